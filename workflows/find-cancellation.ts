import { CancellationScope, CancelledFailure, isCancellation } from '@temporalio/workflow';

/** @throws CancelledFailure if the run was canceled, for example while the last attempt of an activity was in progress. */
export function throwIfCanceled(): void {
  if (CancellationScope.current().consideredCancelled) throw new CancelledFailure('The run was canceled.');
}

/**
 * Call it in the outermost `catch` of a workflow. If the run was canceled while an attempt of an activity was in progress
 * that then failed, the error is that failure, and would end the run as failed: the reconciler would start it again, although
 * an operator ended it.
 *
 * @returns the cancellation in that case, otherwise the error itself.
 */
export function findCancellation(error: unknown): unknown {
  const isHidden = !isCancellation(error) && CancellationScope.current().consideredCancelled;
  return isHidden ? new CancelledFailure('The run was canceled.') : error;
}
