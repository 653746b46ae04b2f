import { proxyActivities } from '@temporalio/workflow';
import type { DeletionActivities } from '../../activities/deletions.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import type { PurgeInput } from './purge.contract.ts';
import { runPurge } from './wait-for-purge.ts';

const { purgeAccountData } = proxyActivities<DeletionActivities>({
  ...DATABASE_STEP,
  startToCloseTimeout: '10 minutes',
});

/**
 * Reminds the person of the deletion of their account, and deletes their personal data 30 days after it.
 *
 * @returns a summary for the Temporal UI.
 */
export function purgeAccount(input: PurgeInput): Promise<string> {
  return runPurge(input, async (reporter) => {
    reporter.report('purging', 'Deleting the account.');
    return purgeAccountData({ deletionId: input.deletionId });
  });
}
