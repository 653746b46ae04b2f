import { ApplicationFailure } from '@temporalio/common';
import type { DeliveryService } from '../domain/webhooks/delivery.service.ts';
import { asFailure } from './failures.ts';

export type WebhookActivities = ReturnType<typeof createWebhookActivities>;

export interface DeliveryRun {
  deliveryId: string;
  /** Empty in runs of before it was named. */
  episode?: number;
}

export function createWebhookActivities({ deliveries }: { deliveries: DeliveryService }) {
  return {
    /**
     * One attempt. A failed one is thrown with the exact time of the next, so that Temporal's own retry is the
     * schedule and the UI shows attempt, last answer and next time.
     */
    attemptDelivery: ({ deliveryId, episode, now }: DeliveryRun & { now: boolean }): Promise<string> =>
      asFailure(async () => {
        const outcome = await deliveries.attempt(deliveryId, now, episode);
        if (outcome.kind === 'settled') return outcome.status;
        const { attempts, detail, delayMs } = outcome;
        throw ApplicationFailure.create({
          type: outcome.kind === 'retry' ? 'DeliveryFailed' : 'EndpointBusy',
          message: outcome.kind === 'retry' ? `Attempt ${attempts}: ${detail}` : detail,
          nextRetryDelay: Math.max(1, delayMs),
        });
      }),

    cancelDelivery: ({ deliveryId, episode }: DeliveryRun): Promise<string> =>
      asFailure(() => deliveries.cancel(deliveryId, episode)),
  };
}
