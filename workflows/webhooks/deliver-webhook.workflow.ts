import {
  ActivityCancellationType,
  CancellationScope,
  defineSignal,
  isCancellation,
  patched,
  proxyActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { WebhookActivities } from '../../activities/webhooks.activities.ts';
import { CANCEL_DELIVERY, type DeliverWebhookInput, RETRY_DELIVERY_NOW } from './deliver-webhook.contract.ts';

const { attemptDelivery } = proxyActivities<WebhookActivities>({
  // An attempt's own time-out is 15 s; the rest is for the database.
  startToCloseTimeout: '90 seconds',
  // A cancellation reaches an activity that backs off at once, and lets one in flight end.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});
const { cancelDelivery } = proxyActivities<WebhookActivities>({
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

export const retryNow = defineSignal(RETRY_DELIVERY_NOW);
export const cancel = defineSignal(CANCEL_DELIVERY);

/**
 * One event on its way to one endpoint. The attempts are retries of one activity, so a delivery has the same short
 * history however often it is tried; Pending Activities shows attempt, last answer and next time.
 *
 * @returns what became of it, for the Temporal UI.
 */
export async function deliverWebhook({ deliveryId, episode }: DeliverWebhookInput): Promise<string> {
  let wish = null as 'retry' | 'cancel' | null;
  let now = false;
  let attempts = new CancellationScope();
  const heed = (wanted: 'retry' | 'cancel') => () => {
    wish = wanted;
    attempts.cancel();
  };
  setHandler(retryNow, heed('retry'), { description: 'Attempt now; an attempt in flight ends first.' });
  setHandler(cancel, heed('cancel'), { description: 'Give the delivery up.' });
  setCurrentDetails('Signals: retryNow, cancel. Attempts and their answers are under Pending Activities.');
  try {
    // Told before its first step: a signal that made the run, or one sent while no worker was there.
    if (wish === 'cancel' && patched('cancel-before-first-attempt'))
      return await cancelDelivery({ deliveryId, episode });
    for (;;) {
      if (wish === 'retry') {
        wish = null;
        now = true;
      }
      attempts = new CancellationScope();
      try {
        return await attempts.run(() => attemptDelivery({ deliveryId, episode, now }));
      } catch (error) {
        // A wish ends the wait; the attempt that was in flight has ended as well, failed or canceled.
        if (wish === null) throw error;
        if (wish === 'cancel') return await cancelDelivery({ deliveryId, episode });
      }
    }
  } catch (error) {
    if (isCancellation(error))
      await CancellationScope.nonCancellable(() => cancelDelivery({ deliveryId, episode }));
    throw error;
  }
}
