import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import {
  changeProblems,
  enumOf,
  id,
  NoContent,
  postProblems,
  problems,
  ref,
  strictObject,
  text,
} from '../schemas.ts';
import {
  CreateInbox,
  INBOX_RESPONSE,
  InboxRecord,
  PauseInbox,
  presentInbox,
  UpdateInbox,
} from './inboxes.schemas.ts';

const InboxQuery = strictObject({
  ...pageQuery,
  email: Type.Optional(
    text(320, { minLength: 3, description: 'Only the inbox with this address or alias, case-insensitive.' }),
  ),
  q: Type.Optional(
    text(320, { minLength: 1, description: 'Part of the address or of the display name, case-insensitive.' }),
  ),
  status: Type.Optional(enumOf(['active', 'suspended'], { description: 'Only inboxes with this status.' })),
  send_paused: Type.Optional(
    Type.Boolean({ description: 'Only inboxes whose sending is paused, or is not.' }),
  ),
});
const InboxParams = strictObject({ id: id('Inbox id (inb_…).') });

export const inboxRoutes =
  ({ inboxes, lists }: { inboxes: InboxService; lists: Lists }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/inboxes',
      {
        config: { permission: 'inboxes:write', ...INBOX_RESPONSE },
        schema: {
          operationId: 'inboxes.create',
          summary: 'Create an inbox',
          description: 'A client_id that was used before returns 200 and the existing inbox.',
          tags: ['Inboxes'],
          body: ref(CreateInbox),
          response: { 200: ref(InboxRecord), 201: ref(InboxRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { display_name, client_id, ...address } = request.body;
        const { inbox, created } = await inboxes.create(request.scope, {
          ...address,
          displayName: display_name,
          clientId: client_id,
        });
        reply.code(created ? 201 : 200);
        return presentInbox(inbox);
      },
    );

    app.get(
      '/inboxes',
      {
        config: { permission: 'inboxes:read' },
        schema: {
          operationId: 'inboxes.list',
          summary: 'List inboxes',
          tags: ['Inboxes'],
          querystring: InboxQuery,
          response: { 200: listOf(ref(InboxRecord)), ...problems() },
        },
      },
      async (request) => {
        const { email, q, status, send_paused: sendPaused } = request.query;
        const filter = { email, q, status, sendPaused };
        const page = await inboxes.list(request.scope, filter, lists.read(request));
        return lists.present(request, page, presentInbox);
      },
    );

    app.get(
      '/inboxes/:id',
      {
        config: { permission: 'inboxes:read' },
        schema: {
          operationId: 'inboxes.get',
          summary: 'Get an inbox',
          tags: ['Inboxes'],
          params: InboxParams,
          response: { 200: ref(InboxRecord), ...problems() },
        },
      },
      async (request) => presentInbox(await inboxes.get(request.scope, request.params.id)),
    );

    app.patch(
      '/inboxes/:id',
      {
        config: { permission: 'inboxes:write', ...INBOX_RESPONSE },
        schema: {
          operationId: 'inboxes.update',
          summary: 'Update an inbox',
          tags: ['Inboxes'],
          params: InboxParams,
          body: ref(UpdateInbox),
          response: { 200: ref(InboxRecord), ...changeProblems(422) },
        },
      },
      async (request) => {
        const { display_name: displayName, aliases } = request.body;
        return presentInbox(await inboxes.update(request.scope, request.params.id, { displayName, aliases }));
      },
    );

    app.post(
      '/inboxes/:id/pause',
      {
        config: { permission: 'inboxes:write', ...INBOX_RESPONSE },
        schema: {
          operationId: 'inboxes.pause',
          summary: 'Pause sending',
          description:
            'The inbox still receives. Sends are refused with message_rejected, also those that are queued or scheduled, until inboxes.resume. A paused inbox keeps its pause and reason, except that a person’s pause replaces each other one.',
          tags: ['Inboxes'],
          params: InboxParams,
          body: ref(PauseInbox),
          response: { 200: ref(InboxRecord), ...postProblems() },
        },
      },
      async (request) =>
        presentInbox(await inboxes.pause(request.scope, request.params.id, request.body.reason)),
    );

    app.post(
      '/inboxes/:id/resume',
      {
        config: { permission: 'inboxes:manage', ...INBOX_RESPONSE },
        schema: {
          operationId: 'inboxes.resume',
          summary: 'Resume paused sending',
          description:
            'If the service had paused it, messages sent before do not pause the inbox again. Not an agent permission: a person should review first. If a person paused it, only a person resumes it.',
          tags: ['Inboxes'],
          params: InboxParams,
          response: { 200: ref(InboxRecord), ...postProblems() },
        },
      },
      async (request) => presentInbox(await inboxes.resume(request.scope, request.params.id)),
    );

    app.delete(
      '/inboxes/:id',
      {
        config: { permission: 'inboxes:write' },
        schema: {
          operationId: 'inboxes.delete',
          summary: 'Delete an inbox',
          description:
            'Cancels queued messages and rejects further mail. Messages stay readable; purge=true deletes them, also for an inbox that was already deleted. The inbox then has the status purging, and answers 404 at the end.',
          tags: ['Inboxes'],
          params: InboxParams,
          querystring: strictObject({
            purge: Type.Boolean({ default: false, description: 'Also delete its messages.' }),
          }),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async (request, reply) => {
        await inboxes.delete(request.scope, request.params.id, { purge: request.query.purge });
        return reply.code(204).send(null);
      },
    );
    done();
  };
