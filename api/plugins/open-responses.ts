import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { unauthenticated } from '../../domain/identity/authentication.ts';
import { createFairShare, type Holder, organizationHolder } from '../../platform/concurrency/fair-share.ts';
import { AppError } from '../../platform/errors.ts';
import type { AccessSignals } from '../../platform/event-signals.ts';
import { connectionOf } from './tool-calls.ts';

/** Tracks responses that stay open: limits their number, and ends them on shutdown and when their credential loses its access. */
export interface OpenResponses {
  /**
   * Counts this response until it is closed.
   *
   * @returns a signal that aborts when the client disconnects, the process shuts down, the credential loses its access, or
   * another organization needs the place of one with more than its share; the response must then end. In the last two cases
   * the reason is the {@link AppError} that a new request would get.
   * @throws AppError `rate_limited`.
   */
  admit(request: FastifyRequest, reply: FastifyReply): AbortSignal;
  /** Number of open responses. */
  readonly count: number;
}

export interface OpenResponsesOptions {
  accessSignals: AccessSignals;
  perCredential: number;
  perProcess: number;
}

const RETRY_AFTER_SECONDS = 5;
/** A check at the end of a credential comes this much later, if the clock of the database is behind. */
const RECHECK_DELAY_MS = 250;
/** Timers of Node fire at once beyond 24 days. */
const MAX_TIMER_MS = 86_400_000;
/** Responses that must end and are still open after this time are destroyed: a client that does not read would hold them. */
const DRAIN_TIMEOUT_MS = 2_000;

export function installOpenResponses(
  app: FastifyInstance,
  { accessSignals, ...limits }: OpenResponsesOptions,
): OpenResponses {
  const shares = createFairShare({ name: 'streams and waits', capacity: limits.perProcess });
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
    for (const reply of openResponses.values()) destroyLater(reply);
  });

  return {
    get count() {
      return openResponses.size;
    },
    admit(request, reply) {
      const { scope, staff } = request;
      const socket = connectionOf(request);
      const controller = new AbortController();
      if (closing || socket.destroyed) controller.abort();
      // The client is already gone: `close` has been emitted, so it would never be uncounted.
      if (socket.destroyed) return controller.signal;
      const release = shares.tryAcquire({
        holders: holdersOf(request, limits.perCredential),
        reclaim() {
          controller.abort(takenBack());
          destroyLater(reply);
          return true;
        },
      });
      if (!release)
        throw shares.isAtMaximum({ holders: holdersOf(request, limits.perCredential) })
          ? tooManyOpen('This credential has', limits.perCredential)
          : tooManyOpen('This process has', limits.perProcess);
      openResponses.set(controller, reply);
      const access = watchAccess(request, controller);
      const unwatch = accessSignals.watch(
        scope
          ? [scope.organizationId, scope.actor.id, ...(scope.connection ? [scope.connection.userId] : [])]
          : [staff.staffId],
        access.check,
      );
      // Access may have ended since the request was authenticated, before its signals were watched.
      access.check();
      reply.raw.once('close', () => {
        release();
        access.close();
        unwatch();
        controller.abort();
        openResponses.delete(controller);
      });
      return controller.signal;
    },
  };
}

/** Destroys the connection: a pipelined response has no socket yet. */
function destroyLater({ raw, request }: FastifyReply): void {
  const timer = setTimeout(() => connectionOf(request).destroy(), DRAIN_TIMEOUT_MS).unref();
  raw.once('close', () => clearTimeout(timer));
}

/**
 * Ends the response when its credential loses its access: at the end of its time, and when a check finds it. `check` follows
 * a signal, and follows a new end of time; signals during a check cause one more.
 */
function watchAccess(request: FastifyRequest, controller: AbortController): { check(): void; close(): void } {
  let isRunning = false;
  let isSignaled = false;
  let timer: NodeJS.Timeout | undefined;

  function arm(minDelayMs: number): void {
    clearTimeout(timer);
    const { accessEndsAt } = request;
    if (!accessEndsAt || controller.signal.aborted) return;
    const remainingMs = Math.max(minDelayMs, accessEndsAt.getTime() - Date.now());
    timer =
      remainingMs > MAX_TIMER_MS ? setTimeout(() => arm(0), MAX_TIMER_MS) : setTimeout(check, remainingMs);
    timer.unref();
  }

  async function run(): Promise<void> {
    isRunning = true;
    while (isSignaled && !controller.signal.aborted) {
      isSignaled = false;
      const refusal = await findAccessRefusal(request);
      if (refusal) controller.abort(refusal);
    }
    isRunning = false;
    arm(RECHECK_DELAY_MS);
  }

  function check(): void {
    isSignaled = true;
    if (!isRunning) void run();
  }

  arm(0);
  return { check, close: () => clearTimeout(timer) };
}

/**
 * Returns why the credential has lost access, or undefined if it has not. If the database is unreachable, the response stays
 * open until the end of the credential's time: no new events arrive meanwhile.
 */
export async function findAccessRefusal(request: FastifyRequest): Promise<AppError | undefined> {
  try {
    await request.recheckAccess();
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error;
    request.log.warn({ err: error }, 'could not check the credential of an open response again');
    const { accessEndsAt } = request;
    return accessEndsAt && accessEndsAt.getTime() <= Date.now() ? unauthenticated() : undefined;
  }
}

/** The refusal that ended a response, if one did. */
export function readRefusal({ reason }: AbortSignal): AppError | undefined {
  return reason instanceof AppError ? reason : undefined;
}

export function holdersOf({ scope, staff }: FastifyRequest, max?: number): Holder[] {
  const limit = max === undefined ? {} : { max };
  if (!scope) return [{ kind: 'credential', id: staff.staffId, ...limit }];
  return [{ kind: 'credential', id: scope.actor.id, ...limit }, organizationHolder(scope.organizationId)];
}

/** A client that connects again gets what its organization has left. */
function takenBack(): AppError {
  return new AppError('rate_limited', {
    detail:
      'The organization has more than its share of the open streams and waiting calls, which others need.',
    fix: `Follow several inboxes with one stream, and continue it from the last event. Try again in ${RETRY_AFTER_SECONDS} s.`,
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}

function tooManyOpen(holder: string, limit: number): AppError {
  return new AppError('rate_limited', {
    detail: `${holder} the maximum of ${limit} open streams and waiting calls.`,
    fix: `Close one, or follow several inboxes with one stream. Try again in ${RETRY_AFTER_SECONDS} s.`,
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}
