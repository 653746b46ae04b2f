import { expect } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { eventually } from './eventually.ts';

/**
 * Resolves once the run has passed its cancellation on to the activity that it waits for. Until then the activity must not
 * end: if it ends while the worker handles the cancellation, the test server loses the workflow task, and the run hangs.
 */
export const untilActivityCancelRequested = (handle: Pick<WorkflowHandle, 'fetchHistory'>): Promise<void> =>
  eventually(async () => {
    const { events = [] } = await handle.fetchHistory();
    expect(events?.some((event) => event.activityTaskCancelRequestedEventAttributes)).toBe(true);
  });
