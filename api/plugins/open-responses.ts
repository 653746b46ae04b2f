import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { unauthenticated } from '../../domain/identity/authentication.ts';
import { createSemaphore } from '../../platform/concurrency/semaphore.ts';
import { AppError } from '../../platform/errors.ts';
import type { AccessSignals } from '../../platform/event-signals.ts';

/** Tracks responses that stay open: limits their number, and ends them on shutdown and when their credential loses its access. */
export interface OpenResponses {
  /**
   * Counts this response until it is closed.
   *
   * @returns a signal that aborts when the client disconnects, the process shuts down or the credential loses its access; the
   * response must then end. In the last case the reason is the {@link AppError} that a new request would get.
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
/** Checks of credentials that run at the same time: a change may concern every response of the process. */
const MAX_CONCURRENT_CHECKS = 4;
/** A check at the end of a credential comes this much later, if the clock of the database is behind. */
const RECHECK_DELAY_MS = 250;
/** Timers of Node fire at once beyond 24 days. */
const MAX_TIMER_MS = 86_400_000;
/** Responses still open after this time are destroyed, because a client that does not read would block the shutdown. */
const DRAIN_TIMEOUT_MS = 2_000;

export function installOpenResponses(
  app: FastifyInstance,
  { accessSignals, ...limits }: OpenResponsesOptions,
): OpenResponses {
  const checks = createSemaphore(MAX_CONCURRENT_CHECKS);
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
    admit(request, reply) {
      const { scope, staff } = request;
      const { socket } = request.raw;
      const credential = scope?.actor.id ?? staff.staffId;
      const openCount = openByCredential.get(credential) ?? 0;
      if (openCount >= limits.perCredential) throw tooManyOpen('This credential has', limits.perCredential);
      if (openResponses.size >= limits.perProcess) throw tooManyOpen('This process has', limits.perProcess);
      const controller = new AbortController();
      if (closing || socket.destroyed) controller.abort();
      // The client is already gone: `close` has been emitted, so it would never be uncounted.
      if (socket.destroyed) return controller.signal;
      openResponses.set(controller, reply);
      const access = watchAccess(request, controller, checks);
      const unwatch = accessSignals.watch(
        scope ? [scope.organizationId, scope.actor.id] : [staff.staffId],
        access.check,
      );
      // Access may have ended since the request was authenticated, before its signals were watched.
      access.check();
      openByCredential.set(credential, openCount + 1);
      reply.raw.once('close', () => {
        access.close();
        unwatch();
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

/**
 * Ends the response when its credential loses its access: at the end of its time, and when a check finds it. `check` follows
 * a signal, and follows a new end of time; signals during a check cause one more.
 */
function watchAccess(
  request: FastifyRequest,
  controller: AbortController,
  checks: ReturnType<typeof createSemaphore>,
): { check(): void; close(): void } {
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
      const release = await checks.acquire();
      const refusal = await findAccessRefusal(request).finally(release);
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

function tooManyOpen(holder: string, limit: number): AppError {
  return new AppError('rate_limited', {
    detail: `${holder} the maximum of ${limit} open streams and waiting calls.`,
    fix: `Close one, or follow several inboxes with one stream. Try again in ${RETRY_AFTER_SECONDS} s.`,
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}
