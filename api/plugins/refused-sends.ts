import type { FastifyInstance, FastifyRequest, RouteHandlerMethod } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { SendRefusal } from '../../domain/identity/scope.ts';
import { isUsageLimitExceeded } from '../../domain/usage/limit-errors.ts';
import { AppError } from '../../platform/errors.ts';
import { toAppError } from './error-responses.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation sends a message: a refusal emits `message.rejected`. Its use-case calls `checkSend`. */
    announcesRefusals?: true;
  }
}

/** How often a refused request is read at all: each costs a body and a transaction, which the limits are to save. */
const WINDOW_MS = 1_000;
/** Of one credential, whichever resources its paths name. */
const MAX_PER_CREDENTIAL = 10;
const MAX_TRACKED = 10_000;

type RefusalReason = SendRefusal['reason'];

export interface RefusedSends {
  /**
   * Refuses a request. If it is a send, it may instead continue as refused: then its handler only records
   * `message.rejected`, and the response is still the refusal. A rate limit admits one request a second for each inbox
   * (or message or draft in the path) and process.
   *
   * @throws the refusal, unless the request continues.
   */
  refuse(request: FastifyRequest, error: unknown, reason: RefusalReason): void;
}

export function createRefusedSends(): RefusedSends {
  const admitted = new LRUCache<string, number>({ max: MAX_TRACKED, ttl: WINDOW_MS });

  function takeTurn(key: string, limit: number): boolean {
    const count = admitted.get(key) ?? 0;
    if (count >= limit) return false;
    // The window starts with its first request.
    // A TTL of 0 would never expire.
    const ttl = count === 0 ? WINDOW_MS : Math.max(1, admitted.getRemainingTTL(key));
    admitted.set(key, count + 1, { ttl });
    return true;
  }

  const admit = ({ scope, params }: FastifyRequest) =>
    takeTurn(`${scope.organizationId} ${JSON.stringify(params)}`, 1) &&
    takeTurn(scope.actor.id, MAX_PER_CREDENTIAL);

  return {
    refuse(request, error, reason) {
      const refusal = toAppError(error);
      if (refusal.status >= 500 || !request.routeOptions.config.announcesRefusals) throw error;
      const sendRefusal = { reason, error: withReason(refusal, reason) };
      const mayAnnounce = request.scope.permissions.has('messages:send');
      if (!mayAnnounce || (reason === 'rate_limited' && !admit(request))) throw sendRefusal.error;
      request.scope = { ...request.scope, sendRefusal };
    },
  };
}

/** The response to a refused send says what its event says. */
function withReason(error: AppError, reason: RefusalReason): AppError {
  return new AppError(error.code, {
    ...error,
    extensions: { ...error.extensions, rejection_reason: reason },
    cause: error.cause,
  });
}

/**
 * Makes the operations that send record their refusals. Install after idempotency and minimal responses: a refusal is never
 * stored, and a limit that shows only at the end has rolled everything back.
 */
export function installRefusedSends(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (!route.config?.announcesRefusals) return;
    const handle = route.handler;
    route.handler = async function (this: FastifyInstance, request, reply) {
      const { scope } = request;
      if (!scope.sendRefusal) {
        try {
          return await handle.call(this, request, reply);
        } catch (error) {
          if (!isUsageLimitExceeded(error)) throw error;
          // Without the transaction of the Idempotency-Key, which was rolled back.
          const reason = 'rate_limited';
          request.scope = { ...scope, sendRefusal: { reason, error: withReason(error, reason) } };
        }
      }
      return record(request, async () => handle.call(this, request, reply));
    } as RouteHandlerMethod;
  });
}

/** Runs the handler, whose use-case records the refusal, and throws the refusal. */
async function record(request: FastifyRequest, handle: () => Promise<unknown>): Promise<never> {
  try {
    await handle();
  } catch (error) {
    // A resource that does not exist or that the credential cannot reach has no event.
    const { status } = toAppError(error);
    if (status >= 500) request.log.warn({ err: error }, 'could not record a refused send');
  }
  throw request.scope.sendRefusal?.error;
}
