import {
  ActivityCancellationType,
  type ActivityOptions,
  CancellationScope,
  defineSignal,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { WebhookActivities } from '../../activities/webhooks.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import { findCancellation, throwIfCanceled } from '../find-cancellation.ts';
import {
  CANCEL_DELIVERY,
  type DeliverWebhookInput,
  RETRY_DELIVERY_NOW,
  type RetryNowOptions,
} from './deliver-webhook.contract.ts';

const ATTEMPT = {
  // The attempt itself times out after at most 60 s; the rest is for the database.
  startToCloseTimeout: '90 seconds',
  // Cancellation ends an activity's backoff immediately but lets an attempt in progress finish.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
} satisfies ActivityOptions;
const { attemptDelivery: attemptLocally } = proxyLocalActivities<WebhookActivities>({
  startToCloseTimeout: ATTEMPT.startToCloseTimeout,
  cancellationType: ATTEMPT.cancellationType,
  retry: { maximumAttempts: 1 },
});
const { cancelDelivery } = proxyActivities<WebhookActivities>(DATABASE_STEP);

export const retryNow = defineSignal<[RetryNowOptions?]>(RETRY_DELIVERY_NOW);
export const cancel = defineSignal(CANCEL_DELIVERY);

/**
 * Delivers one event to one endpoint. The first attempt is a local activity within the first workflow task (6 events instead of
 * 11). If it fails, or too many of them are in progress, the attempts are retries of one regular activity, so the history stays
 * short: Pending Activities shows their count, the last result and the time of the next attempt.
 *
 * @returns the final status, for the Temporal UI.
 */
export async function deliverWebhook({
  deliveryId,
  generation,
  endpointId,
  attemptsLocally = false,
}: DeliverWebhookInput): Promise<string> {
  // Runs that started before their own key was the endpoint have their organization's.
  const { attemptDelivery } = proxyActivities<WebhookActivities>({
    ...ATTEMPT,
    priority: { fairnessKey: endpointId },
  });
  let requested = null as 'retry' | 'cancel' | null;
  let attemptNow = false;
  let isFirst = attemptsLocally;
  let attempts = new CancellationScope();
  const request = (action: 'retry' | 'cancel') => {
    requested = action;
    attempts.cancel();
  };
  setHandler(
    retryNow,
    (options) => {
      if (!options?.isDue) attemptNow = true;
      request('retry');
    },
    { description: 'Attempt now. An attempt in progress finishes first.' },
  );
  setHandler(cancel, () => request('cancel'), { description: 'Cancel the delivery.' });
  const attempt = async (): Promise<string> => {
    const run = { deliveryId, generation, now: attemptNow };
    // One that is requested at once is not made locally: with `now`, the regular activity would repeat it immediately.
    if (isFirst && !attemptNow) {
      isFirst = false;
      try {
        return await attemptLocally(run);
      } catch (error) {
        if (isCancellation(error)) throw error;
      }
    }
    return attemptDelivery(run);
  };
  setCurrentDetails(
    'Signals: retryNow, cancel. Pending Activities shows the attempts and their results; the history has the first one as a marker.',
  );
  try {
    // The signal may arrive before the first step: with signal-with-start, or while no worker is running.
    if (requested === 'cancel') return await cancelDelivery({ deliveryId, generation });
    for (;;) {
      if (requested === 'retry') requested = null;
      attempts = new CancellationScope();
      try {
        const status = await attempts.run(attempt);
        if (!isHeld(status)) return status;
        // Otherwise the release of what is held would deliver what an operator has canceled meanwhile.
        throwIfCanceled();
        return requested === 'cancel' ? await cancelDelivery({ deliveryId, generation }) : status;
      } catch (error) {
        // Without a signal, the attempts have failed. With one, the backoff was canceled or the attempt in progress failed.
        if (requested === null) throw error;
        if (requested === 'cancel') return await cancelDelivery({ deliveryId, generation });
      }
    }
  } catch (failure) {
    const error = findCancellation(failure);
    if (isCancellation(error))
      await CancellationScope.nonCancellable(() => cancelDelivery({ deliveryId, generation }));
    throw error;
  }
}

/** The status says why, for the Temporal UI: "held: usage limit of webhook_deliveries reached". */
const isHeld = (status: string): boolean => status.startsWith('held');
