import { proxyActivities } from '@temporalio/workflow';
import type { UsageAlertActivities } from '../../activities/usage-alerts.activities.ts';

const { notifyThresholds } = proxyActivities<UsageAlertActivities>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '2 minutes',
  // The next check runs in 15 minutes and covers what this one missed.
  retry: { initialInterval: '10 seconds', maximumInterval: '2 minutes', maximumAttempts: 5 },
});

/**
 * Notifies owners of crossed usage thresholds, each once a month. A retry continues with the organizations not checked
 * yet and sends no notification twice.
 *
 * @returns counts, for the Temporal UI.
 */
export async function checkUsage(): Promise<Record<string, number>> {
  return notifyThresholds();
}
