import { expect } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { eventually } from './eventually.ts';

/** An activity that returns `held` when the test ends it. `begun` resolves when it runs. */
export function holdingAttempt() {
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  return {
    begun: begun.promise,
    end: () => ended.resolve(),
    async run(): Promise<'held'> {
      begun.resolve();
      await ended.promise;
      return 'held';
    },
  };
}

/** Waits until the run has asked the activity that it executes to stop. */
export const untilCancelRequested = (handle: Pick<WorkflowHandle, 'fetchHistory'>): Promise<void> =>
  eventually(async () => {
    const { events } = await handle.fetchHistory();
    expect(events?.some((event) => event.activityTaskCancelRequestedEventAttributes)).toBe(true);
  });
