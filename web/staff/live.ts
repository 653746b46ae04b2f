import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../platform/errors.ts';

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  // Without it nginx and compatible proxies buffer the response.
  'x-accel-buffering': 'no',
};
/** Browsers connect again after this delay. */
const RECONNECT_DELAY_MS = 5_000;

export interface LiveOptions {
  /** Ends the stream when it aborts. */
  signal: AbortSignal;
  intervalMs: number;
  /** Renders the part of the page. */
  render(): Promise<string>;
}

/**
 * Sends a part of a page whenever it has changed (server-sent events), until either side closes the stream or the session
 * loses its access.
 */
export function sendLive(
  request: FastifyRequest,
  reply: FastifyReply,
  { signal, intervalMs, render }: LiveOptions,
): FastifyReply {
  async function* updates(): AsyncGenerator<string> {
    yield `retry: ${RECONNECT_DELAY_MS}\n: connected\n\n`;
    let sent: string | undefined;
    while (!signal.aborted) {
      if (!(await hasAccess(request))) return;
      const html = await render();
      yield html === sent ? ': unchanged\n\n' : `event: update\ndata: ${JSON.stringify(html)}\n\n`;
      sent = html;
      await pause(intervalMs, undefined, { signal }).catch(() => undefined);
    }
  }
  reply.headers(HEADERS);
  return reply.send(Readable.from(updates(), { objectMode: false }));
}

async function hasAccess(request: FastifyRequest): Promise<boolean> {
  try {
    await request.recheckAccess();
    return true;
  } catch (error) {
    if (error instanceof AppError) return false;
    request.log.warn({ err: error }, 'could not recheck the session of a live page');
    return true;
  }
}
