import { proxyActivities } from '@temporalio/workflow';
import type { UsageActivities } from '../../activities/usage-alerts.activities.ts';

const { tellOfThresholds } = proxyActivities<UsageActivities>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '2 minutes',
  // The next look is 15 minutes away, and finds what this one did not.
  retry: { initialInterval: '10 seconds', maximumInterval: '2 minutes', maximumAttempts: 5 },
});

/**
 * Tells owners of thresholds their organization crossed, each once a month. A repeat after a crash goes on with the
 * organizations that were not looked at yet, and tells nothing twice.
 *
 * @returns counts, for the Temporal UI.
 */
export async function checkUsage(): Promise<Record<string, number>> {
  return tellOfThresholds();
}
