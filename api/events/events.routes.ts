import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { EventReaderService } from '../../domain/events/event-reader.service.ts';
import { type Lists, listOf } from '../lists.ts';
import { id, problems, ref, strictObject } from '../schemas.ts';
import { parseTime } from '../time.ts';
import { EventQuery, EventRecord, presentEvent } from './events.schemas.ts';

const EventParams = strictObject({ id: id('Event id (evt_…).') });

export const eventRoutes =
  ({ eventReader, lists }: { eventReader: EventReaderService; lists: Lists }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/events',
      {
        config: { permission: 'events:read' },
        schema: {
          operationId: 'events.list',
          summary: 'List events in commit order',
          tags: ['Events'],
          querystring: EventQuery,
          response: { 200: listOf(ref(EventRecord)), ...problems() },
        },
      },
      async (request) => {
        const { type, inbox_id, message_id, before, after, starting_after } = request.query;
        const filter = {
          type,
          inboxId: inbox_id,
          messageId: message_id,
          before: before === undefined ? undefined : parseTime('/query/before', before),
          after: after === undefined ? undefined : parseTime('/query/after', after),
          startingAfter: starting_after,
        };
        const page = await eventReader.list(request.scope, filter, lists.read(request));
        return lists.present(request, page, presentEvent);
      },
    );

    app.get(
      '/events/:id',
      {
        config: { permission: 'events:read' },
        schema: {
          operationId: 'events.get',
          summary: 'Get an event',
          tags: ['Events'],
          params: EventParams,
          response: { 200: ref(EventRecord), ...problems() },
        },
      },
      async (request) => presentEvent(await eventReader.get(request.scope, request.params.id)),
    );
    done();
  };
