import { proxyActivities } from '@temporalio/workflow';
import type { BillingActivities } from '../../activities/billing.activities.ts';
import type { MeteredUsage } from './meter-usage.contract.ts';

const { settleMeteredHours, reportMeteredHours } = proxyActivities<BillingActivities>({
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '1 minute',
  // The next run continues.
  retry: { initialInterval: '10 seconds', maximumAttempts: 5 },
});

/**
 * Writes down what organizations used beyond their soft limits in the hours that are over, and then reports it to Stripe.
 * What a run cannot report, because Stripe is down, the next one does.
 *
 * @returns counts, for the Temporal UI.
 */
export async function meterUsage(): Promise<MeteredUsage> {
  const hours = await settleMeteredHours();
  return { hours, ...(await reportMeteredHours()) };
}
