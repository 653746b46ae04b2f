import {
  CancellationScope,
  condition,
  defineSignal,
  isCancellation,
  proxyActivities,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import type { DeletionActivities } from '../../activities/deletions.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import { findCancellation } from '../find-cancellation.ts';
import { createStageReporter, type StageReporter } from '../stage.ts';
import { CANCEL_PURGE, type PurgeInput, REMINDER_DAYS } from './purge.contract.ts';

const { remindOfPurge, beginPurge, stopPurge } = proxyActivities<DeletionActivities>(DATABASE_STEP);

export const cancel = defineSignal(CANCEL_PURGE);

export type PurgeStage = 'waiting' | 'purging';

const DAY_MS = 86_400_000;
/** If the clocks of the database and of Temporal differ. */
const NOT_DUE_DELAY_MS = 60_000;

/**
 * Waits until the purge is due, with reminders before it, and then runs it. The row decides: of a recovery and the
 * beginning of the purge at the same time one wins. The signal, or canceling the run, stops the purge; the row says so.
 *
 * @param purge runs once recovery is impossible. Returns a summary.
 * @param begin runs first.
 * @returns a summary for the Temporal UI.
 */
export async function runPurge(
  { deletionId, dueAt }: PurgeInput,
  purge: (reporter: StageReporter<PurgeStage>) => Promise<string>,
  begin?: (reporter: StageReporter<PurgeStage>) => Promise<void>,
): Promise<string> {
  const reporter = createStageReporter<PurgeStage>('waiting');
  let isCanceled = false;
  setHandler(
    cancel,
    () => {
      isCanceled = true;
    },
    {
      description:
        'While it waits: ends the run. The service sends it with a recovery; from an operator it stops the purge. Without effect once the purge has begun: cancel or terminate the run instead.',
    },
  );

  /** @returns false if the signal came first. */
  async function waitUntil(time: number, next: string): Promise<boolean> {
    reporter.report(
      'waiting',
      `${next} at ${new Date(time).toISOString()}. Purge due ${dueAt}. Signal: cancel.`,
    );
    const remainingMs = time - Date.now();
    if (remainingMs > 0) await condition(() => isCanceled, remainingMs);
    return !isCanceled;
  }

  async function waitUntilDue(): Promise<boolean> {
    const due = Date.parse(dueAt);
    for (const [index, daysLeft] of REMINDER_DAYS.entries()) {
      const nextReminder = due - (REMINDER_DAYS[index + 1] ?? 0) * DAY_MS;
      // A late run skips the reminders that the next one replaces.
      if (Date.now() >= nextReminder) continue;
      if (!(await waitUntil(due - daysLeft * DAY_MS, 'Next reminder'))) return false;
      await remindOfPurge({ deletionId, daysLeft });
    }
    return waitUntil(due, 'Purge');
  }

  try {
    await begin?.(reporter);
    if (!(await waitUntilDue())) return reporter.end(await stopPurge({ deletionId }));
    for (;;) {
      const state = await beginPurge({ deletionId });
      if (state === 'purging') break;
      if (state !== 'not_due') return reporter.end(state);
      await sleep(NOT_DUE_DELAY_MS);
    }
    return reporter.end(await purge(reporter));
  } catch (failure) {
    const error = findCancellation(failure);
    if (isCancellation(error))
      reporter.end(await CancellationScope.nonCancellable(() => stopPurge({ deletionId })));
    throw error;
  }
}
