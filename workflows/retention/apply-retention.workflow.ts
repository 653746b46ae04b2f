import {
  ActivityCancellationType,
  allHandlersFinished,
  condition,
  defineSignal,
  proxyActivities,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import type { RetentionActivities } from '../../activities/retention.activities.ts';
import { stageBoard } from '../stage.ts';
import {
  type ApplyRetentionInput,
  DELETION_REST_MS,
  MAX_POSTPONE_DAYS,
  POSTPONE_RETENTION,
  type Postponement,
  STRETCHES_A_RUN,
} from './apply-retention.contract.ts';

const { reviewRetention, postponeRetention } = proxyActivities<RetentionActivities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '5 minutes' },
});
const { deleteExpiredMail } = proxyActivities<RetentionActivities>({
  startToCloseTimeout: '1 hour',
  // A run whose deletion fails all day fails itself; the next day's tries anew.
  scheduleToCloseTimeout: '23 hours',
  heartbeatTimeout: '30 seconds',
  // A canceled one shows as canceled once its batch is over.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '10 seconds', maximumInterval: '10 minutes' },
});

const POSTPONEMENT = `{ "days": 1 to ${MAX_POSTPONE_DAYS} }`;

export const postpone = defineSignal<[Postponement]>(POSTPONE_RETENTION);

/**
 * A day of an organization's retention: the owners are told what is due, then what is old enough is deleted, in
 * stretches of some minutes. The policy's row decides, before each batch; a run that is terminated or fails is
 * followed by the next day's, which goes on.
 *
 * @returns what was done, for the Temporal UI.
 */
export async function applyRetention({ organizationId }: ApplyRetentionInput): Promise<string> {
  const board = stageBoard<'reviewing' | 'deleting'>('reviewing');
  let answer = '';
  setHandler(
    postpone,
    async (wish) => {
      // Anybody may send a signal from the Temporal UI, with whatever argument. The row says the rest: the deletion
      // looks at it before its next batch.
      if (!isPostponement(wish)) board.show(board.current, `"postpone" takes ${POSTPONEMENT}.`);
      else answer = await postponeRetention({ organizationId, days: wish.days });
    },
    { description: `Delete nothing for some days, and end: ${POSTPONEMENT}.` },
  );
  const { deletesBefore, warnings } = await reviewRetention({ organizationId });
  const told = `${warnings} warning(s)`;
  const outcome = deletesBefore ? await deleteAll(deletesBefore) : 'nothing to delete';
  await condition(allHandlersFinished);
  return [told, outcome, answer].filter(Boolean).join('; ');

  async function deleteAll(before: string): Promise<string> {
    let progress: Parameters<typeof deleteExpiredMail>[0]['from'] = { messages: 0, threads: 0, place: null };
    for (let stretches = 1; ; stretches += 1) {
      const counts = `${progress.messages} message(s), ${progress.threads} thread(s)`;
      board.show('deleting', `Deleting mail of before ${before}. ${counts} so far.`);
      const { end, detail, ...reached } = await deleteExpiredMail({ organizationId, from: progress });
      progress = reached;
      const deleted = `deleted ${progress.messages} message(s), ${progress.threads} thread(s) of before ${before}`;
      if (end === 'done') return deleted;
      if (end === 'stopped') return `${deleted}, then stopped: ${detail}`;
      if (stretches === STRETCHES_A_RUN) return `${deleted}; the next day’s run goes on`;
      await sleep(DELETION_REST_MS);
    }
  }
}

function isPostponement(wish: Postponement | undefined): wish is Postponement {
  const days = wish?.days;
  return Number.isInteger(days) && Number(days) >= 1 && Number(days) <= MAX_POSTPONE_DAYS;
}
