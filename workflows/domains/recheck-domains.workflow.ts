import { proxyActivities } from '@temporalio/workflow';
import type { DomainActivities } from '../../activities/domains.activities.ts';

const { recheckVerifiedDomains } = proxyActivities<DomainActivities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '2 minutes',
  retry: { initialInterval: '1 minute', maximumInterval: '30 minutes', maximumAttempts: 10 },
});

/**
 * Checks whether every verified domain still publishes its records. A retry after a crash continues with the domains that
 * have not been checked yet.
 *
 * @returns counts, for the Temporal UI.
 */
export async function recheckDomains(): Promise<Record<string, number>> {
  return recheckVerifiedDomains();
}
