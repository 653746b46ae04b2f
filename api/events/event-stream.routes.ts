import { Readable } from 'node:stream';
import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type FeedPosition, parsePosition, positionOf } from '../../domain/events/event-feed.ts';
import type { EventReaderService } from '../../domain/events/event-reader.service.ts';
import type { EventStreams, Follower } from '../../domain/events/event-stream.ts';
import { EVENT_TYPES, type EventType } from '../../domain/events/event-types.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import { envelopeOf } from '../../domain/webhooks/delivery.service.ts';
import type { Cursors } from '../../platform/cursor.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { isId } from '../../platform/ids.ts';
import type { OpenAnswers } from '../plugins/open-answers.ts';
import { closed, id, problems, text } from '../schemas.ts';

const position = (description: string) => Type.Optional(text(256, { minLength: 1, description }));

const StreamQuery = closed({
  after: position(
    'Go on behind this id of an earlier stream, or behind an event (evt_…), wherever it was seen. Last-Event-ID wins over it.',
  ),
  types: Type.Optional(
    text(512, {
      minLength: 1,
      description: 'Only these types, separated by commas: message.received,message.sent',
    }),
  ),
  inbox_id: Type.Optional(id('Only events of this inbox.')),
});

const StreamHeaders = Type.Object({
  'last-event-id': position('Go on behind this id, as an EventSource does by itself.'),
});

/** A description of the whole for as long as somebody listens; the bound is what a JavaScript string holds. */
const Stream = Type.Unsafe<Readable>({
  type: 'string',
  maxLength: 0x1fffffe8,
  description:
    'Server-Sent Events: `event` is the type, `data` the envelope a webhook carries, `id` the position behind it. A comment and the position every 15 s.',
});

export interface EventStreamRoutesOptions {
  eventStreams: EventStreams;
  eventReader: EventReaderService;
  inboxes: InboxService;
  cursors: Cursors;
  openAnswers: OpenAnswers;
  heartbeatMs: number;
}

export const eventStreamRoutes =
  ({
    eventStreams,
    eventReader,
    inboxes,
    cursors,
    openAnswers,
    heartbeatMs,
  }: EventStreamRoutesOptions): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/events/stream',
      {
        // A HEAD would hold the connection open and say nothing.
        exposeHeadRoute: false,
        config: { permission: 'events:read', heldOpen: true },
        schema: {
          operationId: 'events.stream',
          summary: 'Follow events as they happen',
          tags: ['Events'],
          querystring: StreamQuery,
          headers: StreamHeaders,
          response: {
            200: {
              description: 'Open until one side ends it.',
              content: { 'text/event-stream': { schema: Stream } },
            },
            ...problems(),
          },
        },
      },
      async (request, reply) => {
        const { scope, query } = request;
        if (query.inbox_id !== undefined) await inboxes.get(scope, query.inbox_id);
        const positions = positionsOf(cursors, scope);
        const after = request.headers['last-event-id'] ?? query.after ?? '';
        const wanted = {
          after: isId('event', after)
            ? positionOf(await eventReader.get(scope, after))
            : positions.read(after),
          types: readTypes(query.types),
          inboxIds: query.inbox_id === undefined ? undefined : [query.inbox_id],
        };
        const signal = openAnswers.admit(request, reply);
        const follower = await eventStreams.follow(scope, wanted);
        signal.addEventListener('abort', follower.close, { once: true });
        if (signal.aborted) follower.close();
        reply.raw.setTimeout(STALLED_MS);
        reply.headers(HEADERS);
        const blocks = write({ request, follower, signal, heartbeatMs, show: positions.show });
        return reply.send(Readable.from(blocks, { objectMode: false, highWaterMark: BUFFER_BYTES }));
      },
    );
    done();
  };

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  // nginx and those that follow it would gather what is written into blocks of their own.
  'x-accel-buffering': 'no',
};
/** Taken from the reader before anything more is read for it. */
const BUFFER_BYTES = 16_384;
/** A connection over which nothing went for so long is given up: heartbeats would have gone. */
const STALLED_MS = 120_000;
/** Clients come back after some time between the two, so that they do not all come at once. */
const RECONNECT_MS = { least: 500, most: 3_000 };

interface Writing {
  request: FastifyRequest;
  follower: Follower;
  signal: AbortSignal;
  heartbeatMs: number;
  show(position: FeedPosition): string;
}

async function* write({ request, follower, signal, heartbeatMs, show }: Writing): AsyncGenerator<string> {
  try {
    const pause = RECONNECT_MS.least + Math.random() * (RECONNECT_MS.most - RECONNECT_MS.least);
    yield `retry: ${Math.round(pause)}\nid: ${show(follower.position)}\n: connected\n\n`;
    let beatAt = performance.now() + heartbeatMs;
    while (!signal.aborted) {
      const events = await follower.next(Math.max(0, beatAt - performance.now()));
      for (const event of events)
        yield `id: ${show(positionOf(event))}\nevent: ${event.type}\ndata: ${envelopeOf(event)}\n\n`;
      if (signal.aborted || performance.now() < beatAt) continue;
      const refusal = await refusalOf(request);
      if (refusal) {
        yield `: ends, ${refusal.code}\n\n`;
        return;
      }
      // Without data nothing is dispatched, and still the client knows where to go on.
      yield `id: ${show(follower.position)}\n: alive\n\n`;
      beatAt = performance.now() + heartbeatMs;
    }
  } finally {
    follower.close();
  }
}

/** Why the credential may not listen any longer. A database out of reach is no reason: nothing new comes from it. */
async function refusalOf(request: FastifyRequest): Promise<AppError | undefined> {
  try {
    await request.recheckAccess();
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error;
    request.log.warn({ err: error }, 'the credential of a stream could not be looked at');
    return undefined;
  }
}

function readTypes(given: string | undefined): EventType[] | undefined {
  return given?.split(',').map((name) => {
    const type = EVENT_TYPES.find((known) => known === name.trim());
    if (type === undefined)
      throw invalid('/query/types', 'names an unknown type', `The types are ${EVENT_TYPES.join(', ')}.`);
    return type;
  });
}

/** Positions as clients see them: good for the environment they came from, whatever filters are set. */
function positionsOf(cursors: Cursors, { organizationId, environmentId }: Scope) {
  const name = JSON.stringify(['events.stream', organizationId, environmentId]);
  return {
    show: (shown: FeedPosition) => cursors.encode(name, [shown]),
    read(given: string): FeedPosition | undefined {
      if (given === '') return undefined;
      const [known = ''] = cursors.decode(name, given);
      return parsePosition(known);
    },
  };
}
