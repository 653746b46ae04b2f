import { proxyActivities } from '@temporalio/workflow';
import type { RetentionActivities } from '../../activities/retention.activities.ts';

const { startDueRetention } = proxyActivities<RetentionActivities>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumInterval: '10 minutes', maximumAttempts: 20 },
});

/**
 * Starts the day's run of each organization that has mail to warn of or to delete. A repeat starts nothing twice: a
 * run's id has its day.
 *
 * @returns how many, for the Temporal UI.
 */
export async function startRetention(): Promise<number> {
  return startDueRetention();
}
