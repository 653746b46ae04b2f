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
import { createStageReporter } from '../stage.ts';
import {
  type ApplyRetentionInput,
  DELETION_PAUSE_MS,
  MAX_POSTPONE_DAYS,
  MAX_SLICES_PER_RUN,
  POSTPONE_RETENTION,
  type Postponement,
} from './apply-retention.contract.ts';

const { reviewRetention, postponeRetention } = proxyActivities<RetentionActivities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '5 minutes' },
});
const { deleteExpiredMail } = proxyActivities<RetentionActivities>({
  startToCloseTimeout: '1 hour',
  // If deletion fails for most of a day, the run fails; the next daily run retries.
  scheduleToCloseTimeout: '23 hours',
  heartbeatTimeout: '30 seconds',
  // Cancellation completes after the current batch.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '10 seconds', maximumInterval: '10 minutes' },
});

const POSTPONEMENT = `{ "days": 1 to ${MAX_POSTPONE_DAYS} }`;

export const postpone = defineSignal<[Postponement]>(POSTPONE_RETENTION);

/**
 * The daily retention run of an organization: sends the warnings that are due, then deletes expired messages in
 * slices of a few minutes. Each batch rereads the policy. If the run fails or is terminated, the next daily run
 * continues.
 *
 * @returns a summary for the Temporal UI.
 */
export async function applyRetention({ organizationId }: ApplyRetentionInput): Promise<string> {
  const reporter = createStageReporter<'reviewing' | 'deleting'>('reviewing');
  let postponement = '';
  setHandler(
    postpone,
    async (request) => {
      // Validated, since operators can send the signal from the Temporal UI with any argument. The deletion rereads the
      // policy before its next batch.
      if (!isPostponement(request))
        reporter.report(reporter.current, `Ignored signal: "postpone" takes ${POSTPONEMENT}.`);
      else postponement = await postponeRetention({ organizationId, days: request.days });
    },
    { description: `Postpones deletion and ends this run: ${POSTPONEMENT}.` },
  );
  const { cutoff, warnings } = await reviewRetention({ organizationId });
  const summary = `${warnings} warning(s) sent`;
  const outcome = cutoff ? await deleteAll(cutoff) : 'nothing to delete';
  await condition(allHandlersFinished);
  return reporter.end([summary, outcome, postponement].filter(Boolean).join('; '));

  async function deleteAll(cutoff: string): Promise<string> {
    let progress: Parameters<typeof deleteExpiredMail>[0]['from'] = { messages: 0, threads: 0, cursor: null };
    for (let slices = 1; ; slices += 1) {
      const counts = `${progress.messages} message(s), ${progress.threads} thread(s)`;
      reporter.report('deleting', `Deleting messages from before ${cutoff}. ${counts} deleted so far.`);
      const { end, detail, ...reached } = await deleteExpiredMail({ organizationId, from: progress });
      progress = reached;
      const deleted = `deleted ${progress.messages} message(s), ${progress.threads} thread(s) from before ${cutoff}`;
      if (end === 'done') return deleted;
      if (end === 'stopped') return `${deleted}; stopped: ${detail}`;
      if (slices === MAX_SLICES_PER_RUN) return `${deleted}; the next daily run continues`;
      await sleep(DELETION_PAUSE_MS);
    }
  }
}

function isPostponement(request: Postponement | undefined): request is Postponement {
  const days = request?.days;
  return Number.isInteger(days) && Number(days) >= 1 && Number(days) <= MAX_POSTPONE_DAYS;
}
