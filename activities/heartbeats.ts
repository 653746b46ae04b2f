import { activityInfo, Context } from '@temporalio/activity';
import { withApplicationFailures } from './failures.ts';

const DEFAULT_HEARTBEAT_TIMEOUT_MS = 30_000;
const MIN_HEARTBEAT_INTERVAL_MS = 1_000;

/**
 * Runs an activity and heartbeats three times per heartbeat timeout. Without heartbeats, Temporal notices a killed worker
 * only when the whole activity times out.
 */
export async function withHeartbeats<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  // A local activity has no heartbeats; the timeout of its workflow task covers it.
  if (context.info.isLocal) return withApplicationFailures(work);
  const timeoutMs = activityInfo().heartbeatTimeoutMs ?? DEFAULT_HEARTBEAT_TIMEOUT_MS;
  const timer = setInterval(() => context.heartbeat(), Math.max(MIN_HEARTBEAT_INTERVAL_MS, timeoutMs / 3));
  try {
    return await withApplicationFailures(work);
  } finally {
    clearInterval(timer);
  }
}

/**
 * Heartbeats between two steps of a long activity. Ends it there if the run is canceled or the worker shuts down; in the
 * second case Temporal starts the next attempt on another worker immediately.
 *
 * @throws CancelledFailure
 */
export function heartbeatBetweenSteps(details?: unknown): void {
  const context = Context.current();
  context.heartbeat(details);
  context.cancellationSignal.throwIfAborted();
}
