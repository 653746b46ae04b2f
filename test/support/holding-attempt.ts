import { expect } from '@jest/globals';
import type { WorkflowFailedError, WorkflowHandle } from '@temporalio/client';
import { eventually } from './eventually.ts';

/** An activity that returns `status` when the test ends it. `begun` resolves when it runs. */
export function holdingAttempt<Status extends string = 'held'>(status = 'held' as Status) {
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  return {
    begun: begun.promise,
    end: () => ended.resolve(),
    async run(): Promise<Status> {
      begun.resolve();
      await ended.promise;
      return status;
    },
  };
}

/** Cancels a run during its {@link holdingAttempt}, and waits until it has ended: completed, or canceled. */
export async function cancelDuringAttempt(
  handle: Pick<WorkflowHandle, 'fetchHistory' | 'result'>,
  { begun, end }: Pick<ReturnType<typeof holdingAttempt>, 'begun' | 'end'>,
  cancel: () => Promise<unknown>,
): Promise<void> {
  await begun;
  await cancel();
  await eventually(async () => {
    const { events } = await handle.fetchHistory();
    expect(events?.some((event) => event.activityTaskCancelRequestedEventAttributes)).toBe(true);
  });
  end();
  await handle.result().catch((error: WorkflowFailedError) => {
    expect(error.cause).toMatchObject({ name: 'CancelledFailure' });
  });
}
