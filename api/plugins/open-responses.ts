import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../platform/errors.ts';

/** Answers that stay open: how many there may be, and what ends them. */
export interface OpenResponses {
  /**
   * Counts this answer until it is over.
   *
   * @returns aborted once the client has gone or the process is asked to end; the answer then has to end, too.
   * @throws AppError `rate_limited`.
   */
  admit(request: FastifyRequest, reply: FastifyReply): AbortSignal;
  /** How many there are. */
  readonly count: number;
}

export interface OpenResponseLimits {
  perCredential: number;
  perProcess: number;
}

const RETRY_AFTER_SECONDS = 5;
/** A reader that takes nothing any more cannot be told that it is over. */
const DRAIN_TIMEOUT_MS = 2_000;

export function installOpenResponses(app: FastifyInstance, limits: OpenResponseLimits): OpenResponses {
  const openByCredential = new Map<string, number>();
  const openResponses = new Map<AbortController, FastifyReply>();
  let closing = false;

  // Before the server stops to listen: it waits for every answer under way.
  app.addHook('preClose', async () => {
    closing = true;
    for (const [ending, { raw }] of openResponses) {
      // Kept alive it would hold the server up: idle connections are closed only once, and this one is not idle yet.
      const { socket } = raw;
      raw.once('close', () => socket?.end());
      ending.abort();
    }
    setTimeout(() => {
      for (const reply of openResponses.values()) reply.raw.destroy();
    }, DRAIN_TIMEOUT_MS).unref();
  });

  return {
    get count() {
      return openResponses.size;
    },
    admit({ scope, raw: { socket } }, reply) {
      const credential = scope.actor.id;
      const open = openByCredential.get(credential) ?? 0;
      if (open >= limits.perCredential) throw tooManyOpen('This credential holds', limits.perCredential);
      if (openResponses.size >= limits.perProcess) throw tooManyOpen('This process holds', limits.perProcess);
      const ending = new AbortController();
      if (closing || socket.destroyed) ending.abort();
      // Gone before it was let in: its close was told already, and nothing would ever end its count.
      if (socket.destroyed) return ending.signal;
      openResponses.set(ending, reply);
      openByCredential.set(credential, open + 1);
      reply.raw.once('close', () => {
        ending.abort();
        openResponses.delete(ending);
        const left = (openByCredential.get(credential) ?? 1) - 1;
        if (left > 0) openByCredential.set(credential, left);
        else openByCredential.delete(credential);
      });
      return ending.signal;
    },
  };
}

function tooManyOpen(holder: string, limit: number): AppError {
  return new AppError('rate_limited', {
    detail: `${holder} ${limit} streams and waiting calls open, and may hold no more.`,
    fix: `Close one, or follow several inboxes by one stream; try again in ${RETRY_AFTER_SECONDS} s.`,
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}
