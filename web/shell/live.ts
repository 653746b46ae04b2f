import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OpenResponses } from '../../api/plugins/open-responses.ts';
import type { EventStreams, FollowOptions } from '../../domain/events/event-stream.ts';

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  // Without it nginx and compatible proxies buffer the response.
  'x-accel-buffering': 'no',
};
/** Browsers connect again after this delay. */
const RECONNECT_DELAY_MS = 5_000;
/** Between two updates of a part, so that many events make few renderings. */
const MIN_INTERVAL_MS = 1_000;
const HEARTBEAT_MS = 15_000;

export interface LivePart extends Pick<FollowOptions, 'types' | 'inboxIds'> {
  /** Renders it also at this interval, for what changes without an event. */
  intervalMs?: number;
  /** Renders the part of the page. */
  render(): Promise<string>;
}

export interface LivePartsOptions {
  eventStreams: EventStreams;
  openResponses: OpenResponses;
}

/** Sends a part of a page again after events of the environment (server-sent events), while the session has access. */
export function createLiveParts({ eventStreams, openResponses }: LivePartsOptions) {
  return async function sendLivePart(
    request: FastifyRequest,
    reply: FastifyReply,
    { types, inboxIds, intervalMs, render }: LivePart,
  ): Promise<FastifyReply> {
    const signal = openResponses.admit(request, reply);
    const follower = await eventStreams.follow(request.scope, { types, inboxIds });
    signal.addEventListener('abort', follower.close, { once: true });
    if (signal.aborted) follower.close();

    async function* updates(): AsyncGenerator<string> {
      yield `retry: ${RECONNECT_DELAY_MS}\n: connected\n\n`;
      try {
        // The page may be older than the stream.
        let isDue = true;
        let sent: string | undefined;
        while (!signal.aborted) {
          const html = isDue ? await render() : sent;
          yield html === sent ? ': unchanged\n\n' : `event: update\ndata: ${JSON.stringify(html)}\n\n`;
          sent = html;
          await pause(MIN_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
          const events = await follower.next(intervalMs ?? HEARTBEAT_MS);
          isDue = intervalMs !== undefined || events.length > 0;
        }
      } finally {
        follower.close();
      }
    }
    reply.headers(HEADERS);
    return reply.send(Readable.from(updates(), { objectMode: false }));
  };
}
