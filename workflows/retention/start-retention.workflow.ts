import { proxyActivities } from '@temporalio/workflow';
import type { RetentionActivities } from '../../activities/retention.activities.ts';

const { startRetentionRuns } = proxyActivities<RetentionActivities>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumInterval: '10 minutes', maximumAttempts: 20 },
});

/**
 * Starts today's run of each organization that has warnings to send or messages to delete. A retry starts nothing
 * twice, since a run's id contains the day.
 *
 * @returns the number of runs started, for the Temporal UI.
 */
export async function startRetention(): Promise<number> {
  return startRetentionRuns();
}
