import { Readable } from 'node:stream';
import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { serializeEnvelope } from '../../domain/events/envelope.ts';
import { type FeedPosition, parsePosition, positionOf } from '../../domain/events/event-feed.ts';
import type { Follower } from '../../domain/events/event-follower.ts';
import type { EventReaderService } from '../../domain/events/event-reader.service.ts';
import type { EventStreams } from '../../domain/events/event-stream.ts';
import { EVENT_TYPES, type EventType } from '../../domain/events/event-types.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import type { Cursors } from '../../platform/cursor.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { isId } from '../../platform/ids.ts';
import { findAccessRefusal, type OpenResponses, readRefusal } from '../plugins/open-responses.ts';
import { id, problems, strictObject, text } from '../schemas.ts';

const optionalPosition = (description: string) => Type.Optional(text(256, { minLength: 1, description }));

const StreamQuery = strictObject({
  after: optionalPosition(
    'Resume after this stream position, or after an event id (evt_…) from any source. Last-Event-ID takes precedence.',
  ),
  types: Type.Optional(
    text(512, {
      minLength: 1,
      description: 'Only these types, comma-separated: message.received,message.sent',
    }),
  ),
  inbox_id: Type.Optional(id('Only events of this inbox.')),
});

const StreamHeaders = Type.Object({
  'last-event-id': optionalPosition('Resume after this id. EventSource clients send it automatically.'),
});

/** Describes the whole stream; the bound is the maximum length of a JavaScript string. */
const EventStreamBody = Type.Unsafe<Readable>({
  type: 'string',
  maxLength: 0x1fffffe8,
  description:
    'Server-Sent Events: `event` is the type, `data` the same envelope a webhook carries, `id` the position after the event. Every 15 s a heartbeat sends a comment and the position.',
});

export interface EventStreamRoutesOptions {
  eventStreams: EventStreams;
  eventReader: EventReaderService;
  inboxes: InboxService;
  cursors: Cursors;
  openResponses: OpenResponses;
  heartbeatMs: number;
}

export const eventStreamRoutes =
  ({
    eventStreams,
    eventReader,
    inboxes,
    cursors,
    openResponses,
    heartbeatMs,
  }: EventStreamRoutesOptions): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/events/stream',
      {
        // A HEAD request would hold the connection open without any data.
        exposeHeadRoute: false,
        config: { permission: 'events:read', heldOpen: true },
        schema: {
          operationId: 'events.stream',
          summary: 'Stream events live',
          tags: ['Events'],
          querystring: StreamQuery,
          headers: StreamHeaders,
          response: {
            200: {
              description: 'A stream that stays open until either side closes it.',
              content: { 'text/event-stream': { schema: EventStreamBody } },
            },
            ...problems(),
          },
        },
      },
      async (request, reply) => {
        const { scope, query } = request;
        if (query.inbox_id !== undefined) await inboxes.get(scope, query.inbox_id);
        const positions = createPositionCodec(cursors, scope);
        const header = request.headers['last-event-id'];
        const after = header ?? query.after ?? '';
        const followOptions = {
          after: isId('event', after)
            ? positionOf(await eventReader.get(scope, after))
            : positions.decode(after, header === undefined ? '/query/after' : '/headers/last-event-id'),
          types: parseTypes(query.types),
          inboxIds: query.inbox_id === undefined ? undefined : [query.inbox_id],
        };
        const signal = openResponses.admit(request, reply);
        const follower = await eventStreams.follow(scope, followOptions);
        signal.addEventListener('abort', follower.close, { once: true });
        if (signal.aborted) follower.close();
        reply.raw.setTimeout(STALL_TIMEOUT_MS);
        reply.headers(HEADERS);
        const chunks = writeStream({
          request,
          follower,
          signal,
          heartbeatMs,
          encodePosition: positions.encode,
        });
        return reply.send(Readable.from(chunks, { objectMode: false, highWaterMark: BUFFER_BYTES }));
      },
    );
    done();
  };

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  // Without it nginx and compatible proxies buffer the response.
  'x-accel-buffering': 'no',
};
/** Output buffered for a slow client before reading more events pauses. */
const BUFFER_BYTES = 16_384;
/** A connection without progress for this long is closed: even an idle stream sends heartbeats. */
const STALL_TIMEOUT_MS = 120_000;
/** Clients reconnect after a random delay in this range, so that they do not all reconnect simultaneously. */
const RECONNECT_DELAY_MS = { min: 500, max: 3_000 };

interface StreamContext {
  request: FastifyRequest;
  follower: Follower;
  signal: AbortSignal;
  heartbeatMs: number;
  encodePosition(position: FeedPosition): string;
}

async function* writeStream({
  request,
  follower,
  signal,
  heartbeatMs,
  encodePosition,
}: StreamContext): AsyncGenerator<string> {
  try {
    const reconnectDelayMs =
      RECONNECT_DELAY_MS.min + Math.random() * (RECONNECT_DELAY_MS.max - RECONNECT_DELAY_MS.min);
    yield `retry: ${Math.round(reconnectDelayMs)}\nid: ${encodePosition(follower.position)}\n: connected\n\n`;
    let nextHeartbeatAt = performance.now() + heartbeatMs;
    while (!signal.aborted) {
      const events = await follower.next(Math.max(0, nextHeartbeatAt - performance.now()));
      for (const event of events) {
        if (signal.aborted) break;
        yield `id: ${encodePosition(positionOf(event))}\nevent: ${event.type}\ndata: ${serializeEnvelope(event)}\n\n`;
      }
      if (signal.aborted || performance.now() < nextHeartbeatAt) continue;
      const refusal = await findAccessRefusal(request);
      if (refusal) {
        yield describeEnd(refusal);
        return;
      }
      // A block without data dispatches no event but still updates the client's last event id.
      yield `id: ${encodePosition(follower.position)}\n: alive\n\n`;
      nextHeartbeatAt = performance.now() + heartbeatMs;
    }
    const refusal = readRefusal(signal);
    if (refusal) yield describeEnd(refusal);
  } finally {
    follower.close();
  }
}

const describeEnd = ({ code }: AppError): string => `: closing, ${code}\n\n`;

function parseTypes(types: string | undefined): EventType[] | undefined {
  return types?.split(',').map((name) => {
    const type = EVENT_TYPES.find((known) => known === name.trim());
    if (type === undefined)
      throw invalid(
        '/query/types',
        'contains an unknown event type',
        `Use any of ${EVENT_TYPES.join(', ')}.`,
      );
    return type;
  });
}

/** Encodes positions for clients. A position is valid for its environment, with any filters. */
function createPositionCodec(cursors: Cursors, { organizationId, environmentId }: Scope) {
  const name = JSON.stringify(['events.stream', organizationId, environmentId]);
  return {
    encode: (position: FeedPosition) => cursors.encode(name, [position]),
    /** @param path names the position in the problem of a wrong one. */
    decode(text: string, path: string): FeedPosition | undefined {
      if (text === '') return undefined;
      const [position = ''] = decodePosition(() => cursors.decode(name, text), path);
      return parsePosition(position);
    },
  };
}

/** The words of a list's cursor would mislead: a stream has no next_cursor. */
function decodePosition<T>(decode: () => T, path: string): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'invalid_cursor') throw error;
    throw new AppError('invalid_cursor', {
      detail:
        'The position in Last-Event-ID or after does not belong to the stream of this environment, or is not complete.',
      fix: 'Pass the last id that the stream sent, unchanged, or the id of an event (evt_…), and select the same environment. Without a position, the stream starts with the next event.',
      errors: [{ path, message: 'is not a position of this stream' }],
    });
  }
}
