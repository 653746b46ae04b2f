import {
  ActivityCancellationType,
  continueAsNew,
  isCancellation,
  log,
  proxyActivities,
  sleep,
} from '@temporalio/workflow';
import type { BillingActivities } from '../../activities/billing.activities.ts';
import type { DeletionActivities } from '../../activities/deletions.activities.ts';
import type { StageReporter } from '../stage.ts';
import {
  EXPIRE_CHECKOUT_TIMEOUT_MS,
  MAX_SLICES_PER_RUN,
  PURGE_PAUSE_MS,
  type PurgeInput,
} from './purge.contract.ts';
import { type PurgeStage, runPurge } from './wait-for-purge.ts';

const { purgeOrganizationData } = proxyActivities<DeletionActivities>({
  // The last step may scan large tables once.
  startToCloseTimeout: '3 hours',
  heartbeatTimeout: '1 minute',
  // Cancellation completes after the current batch.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '10 seconds', maximumInterval: '10 minutes' },
});

const { expireCheckout } = proxyActivities<BillingActivities>({
  startToCloseTimeout: '2 minutes',
  scheduleToCloseTimeout: EXPIRE_CHECKOUT_TIMEOUT_MS,
  retry: { initialInterval: '1 second', maximumInterval: '10 minutes' },
});

/**
 * Expires the open checkout of a closed organization, reminds its owners, and 30 days after the closing deletes everything
 * that belongs to it: in batches, which can be interrupted at any point, and in slices of a few minutes.
 *
 * @returns a summary for the Temporal UI.
 */
export function purgeOrganization(input: PurgeInput): Promise<string> {
  const purge = async (reporter: StageReporter<PurgeStage>) => {
    let deletedRows = 0;
    for (let slice = 1; slice <= MAX_SLICES_PER_RUN; slice += 1) {
      reporter.report('purging', `Deleting the organization. ${deletedRows} rows deleted so far.`);
      const { isDone, rows } = await purgeOrganizationData({ deletionId: input.deletionId });
      deletedRows += rows;
      if (isDone) return `purged: deleted ${deletedRows} row(s)`;
      await sleep(PURGE_PAUSE_MS);
    }
    return continueAsNew<typeof purgeOrganization>({ ...input, expiresCheckout: false });
  };
  return runPurge(input, purge, input.expiresCheckout ? endCheckout : undefined);

  async function endCheckout(reporter: StageReporter<PurgeStage>): Promise<void> {
    reporter.report('waiting', 'Expiring the open checkout at Stripe, so that it cannot be paid.');
    try {
      await expireCheckout({ deletionId: input.deletionId });
    } catch (error) {
      if (isCancellation(error)) throw error;
      // It has expired by itself by now.
      log.warn('could not expire the checkout', { error });
    }
  }
}
