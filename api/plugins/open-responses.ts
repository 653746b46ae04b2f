import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../platform/errors.ts';

/** Tracks responses that stay open: limits their number and ends them on shutdown. */
export interface OpenResponses {
  /**
   * Counts this response until it is closed.
   *
   * @returns a signal that aborts when the client disconnects or the process shuts down; the response must then end.
   * @throws AppError `rate_limited`.
   */
  admit(request: FastifyRequest, reply: FastifyReply): AbortSignal;
  /** Number of open responses. */
  readonly count: number;
}

export interface OpenResponseLimits {
  perCredential: number;
  perProcess: number;
}

const RETRY_AFTER_SECONDS = 5;
/** Responses still open after this time are destroyed, because a client that does not read would block the shutdown. */
const DRAIN_TIMEOUT_MS = 2_000;

export function installOpenResponses(app: FastifyInstance, limits: OpenResponseLimits): OpenResponses {
  const openByCredential = new Map<string, number>();
  const openResponses = new Map<AbortController, FastifyReply>();
  let closing = false;

  // Runs before the server stops listening, because the server then waits for every response in progress.
  app.addHook('preClose', async () => {
    closing = true;
    for (const [controller, { raw }] of openResponses) {
      // Close the connection explicitly: Node closes idle connections only once, and this one is not idle yet.
      const { socket } = raw;
      raw.once('close', () => socket?.end());
      controller.abort();
    }
    setTimeout(() => {
      for (const reply of openResponses.values()) reply.raw.destroy();
    }, DRAIN_TIMEOUT_MS).unref();
  });

  return {
    get count() {
      return openResponses.size;
    },
    admit({ scope, staff, raw: { socket } }, reply) {
      const credential = scope?.actor.id ?? staff.staffId;
      const openCount = openByCredential.get(credential) ?? 0;
      if (openCount >= limits.perCredential) throw tooManyOpen('This credential has', limits.perCredential);
      if (openResponses.size >= limits.perProcess) throw tooManyOpen('This process has', limits.perProcess);
      const controller = new AbortController();
      if (closing || socket.destroyed) controller.abort();
      // The client is already gone: `close` has been emitted, so it would never be uncounted.
      if (socket.destroyed) return controller.signal;
      openResponses.set(controller, reply);
      const end = scope?.impersonation && abortAt(controller, scope.impersonation.expiresAt);
      openByCredential.set(credential, openCount + 1);
      reply.raw.once('close', () => {
        clearTimeout(end);
        controller.abort();
        openResponses.delete(controller);
        const remaining = (openByCredential.get(credential) ?? 1) - 1;
        if (remaining > 0) openByCredential.set(credential, remaining);
        else openByCredential.delete(credential);
      });
      return controller.signal;
    },
  };
}

/** An impersonation ends at its time, also between two checks of its credential. */
function abortAt(controller: AbortController, time: Date): NodeJS.Timeout {
  return setTimeout(() => controller.abort(), Math.max(0, time.getTime() - Date.now())).unref();
}

function tooManyOpen(holder: string, limit: number): AppError {
  return new AppError('rate_limited', {
    detail: `${holder} the maximum of ${limit} open streams and waiting calls.`,
    fix: `Close one, or follow several inboxes with one stream. Try again in ${RETRY_AFTER_SECONDS} s.`,
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}
