import { proxyActivities } from '@temporalio/workflow';
import type { BillingActivities } from '../../activities/billing.activities.ts';

const { requestReadBacks } = proxyActivities<BillingActivities>({
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumAttempts: 5 },
});

/**
 * Requests a read of every open subscription that was not read for a day, so that events lost in an outage do no harm.
 *
 * @returns the number of requests, for the Temporal UI.
 */
export async function reconcileBilling(): Promise<number> {
  return requestReadBacks();
}
