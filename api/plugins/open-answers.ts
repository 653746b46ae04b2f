import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../platform/errors.ts';

/** Answers that stay open: how many there may be, and what ends them. */
export interface OpenAnswers {
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

export interface OpenAnswerLimits {
  perCredential: number;
  perProcess: number;
}

const RETRY_AFTER_SECONDS = 5;
/** A reader that takes nothing any more cannot be told that it is over. */
const FAREWELL_MS = 2_000;

export function installOpenAnswers(app: FastifyInstance, limits: OpenAnswerLimits): OpenAnswers {
  const openOf = new Map<string, number>();
  const endings = new Map<AbortController, FastifyReply>();
  let closing = false;

  // Before the server stops to listen: it waits for every answer under way.
  app.addHook('preClose', async () => {
    closing = true;
    for (const [ending, { raw }] of endings) {
      // Kept alive it would hold the server up: idle connections are closed only once, and this one is not idle yet.
      const { socket } = raw;
      raw.once('close', () => socket?.end());
      ending.abort();
    }
    setTimeout(() => {
      for (const reply of endings.values()) reply.raw.destroy();
    }, FAREWELL_MS).unref();
  });

  return {
    get count() {
      return endings.size;
    },
    admit({ scope, raw: { socket } }, reply) {
      const credential = scope.actor.id;
      const open = openOf.get(credential) ?? 0;
      if (open >= limits.perCredential) throw tooMany('This credential holds', limits.perCredential);
      if (endings.size >= limits.perProcess) throw tooMany('This process holds', limits.perProcess);
      const ending = new AbortController();
      if (closing || socket.destroyed) ending.abort();
      // Gone before it was let in: its close was told already, and nothing would ever end its count.
      if (socket.destroyed) return ending.signal;
      endings.set(ending, reply);
      openOf.set(credential, open + 1);
      reply.raw.once('close', () => {
        ending.abort();
        endings.delete(ending);
        const left = (openOf.get(credential) ?? 1) - 1;
        if (left > 0) openOf.set(credential, left);
        else openOf.delete(credential);
      });
      return ending.signal;
    },
  };
}

function tooMany(holder: string, limit: number): AppError {
  return new AppError('rate_limited', {
    detail: `${holder} ${limit} streams and waiting calls open, and may hold no more.`,
    fix: `Close one, or follow several inboxes by one stream; try again in ${RETRY_AFTER_SECONDS} s.`,
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}
