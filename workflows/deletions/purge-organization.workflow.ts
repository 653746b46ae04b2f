import { ActivityCancellationType, continueAsNew, proxyActivities, sleep } from '@temporalio/workflow';
import type { DeletionActivities } from '../../activities/deletions.activities.ts';
import { MAX_SLICES_PER_RUN, PURGE_PAUSE_MS, type PurgeInput } from './purge.contract.ts';
import { runPurge } from './wait-for-purge.ts';

const { purgeOrganizationData } = proxyActivities<DeletionActivities>({
  // The last step may scan large tables once.
  startToCloseTimeout: '3 hours',
  heartbeatTimeout: '1 minute',
  // Cancellation completes after the current batch.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '10 seconds', maximumInterval: '10 minutes' },
});

/**
 * Reminds the owners of a closed organization, and 30 days after the closing deletes everything that belongs to it: in
 * batches, which can be interrupted at any point, and in slices of a few minutes.
 *
 * @returns a summary for the Temporal UI.
 */
export function purgeOrganization(input: PurgeInput): Promise<string> {
  return runPurge(input, async (reporter) => {
    let deletedRows = 0;
    for (let slice = 1; slice <= MAX_SLICES_PER_RUN; slice += 1) {
      reporter.report('purging', `Deleting the organization. ${deletedRows} rows deleted so far.`);
      const { isDone, rows } = await purgeOrganizationData({ deletionId: input.deletionId });
      deletedRows += rows;
      if (isDone) return `purged: deleted ${deletedRows} row(s)`;
      await sleep(PURGE_PAUSE_MS);
    }
    return continueAsNew<typeof purgeOrganization>(input);
  });
}
