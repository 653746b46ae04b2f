import { defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';
import type { BillingActivities } from '../../activities/billing.activities.ts';
import { createStageReporter } from '../stage.ts';
import { SUBSCRIPTION_CHANGED, type SyncSubscriptionInput } from './sync-subscription.contract.ts';

const { syncSubscription: readBack } = proxyActivities<BillingActivities>({
  startToCloseTimeout: '2 minutes',
  // Stripe may be down for hours.
  retry: { initialInterval: '1 second', maximumInterval: '5 minutes' },
});

const subscriptionChanged = defineSignal(SUBSCRIPTION_CHANGED);

/**
 * Reads a subscription back from Stripe and applies the answer, once more if another event arrived meanwhile. What the
 * events say does not matter, and neither does their order.
 *
 * @returns the subscription's status, for the Temporal UI.
 */
export async function syncSubscription({ subscriptionId }: SyncSubscriptionInput): Promise<string> {
  const reporter = createStageReporter<'reading'>('reading');
  let isDue = true;
  setHandler(
    subscriptionChanged,
    () => {
      isDue = true;
    },
    { description: 'Reads the subscription back from Stripe once more.' },
  );
  let result = '';
  while (isDue) {
    isDue = false;
    result = await readBack({ subscriptionId });
  }
  return reporter.end(result);
}
