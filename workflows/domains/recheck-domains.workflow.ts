import { proxyActivities } from '@temporalio/workflow';
import type { DomainActivities } from '../../activities/domains.activities.ts';

const { recheckVerifiedDomains } = proxyActivities<DomainActivities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '2 minutes',
  retry: { initialInterval: '1 minute', maximumInterval: '30 minutes', maximumAttempts: 10 },
});

/**
 * Looks at every verified domain whether its records are still there. A repeat after a crash goes on with those that
 * were not looked at yet.
 *
 * @returns counts, for the Temporal UI.
 */
export async function recheckDomains(): Promise<Record<string, number>> {
  return recheckVerifiedDomains();
}
