import { ApplicationFailure } from '@temporalio/common';
import type { DeliveryService } from '../domain/webhooks/delivery.service.ts';
import { asFailure } from './failures.ts';

export type WebhookActivities = ReturnType<typeof createWebhookActivities>;

export function createWebhookActivities({ deliveries }: { deliveries: DeliveryService }) {
  return {
    /**
     * One attempt. A failed one is thrown with the exact time of the next, so that Temporal's own retry is the
     * schedule and the UI shows attempt, last answer and next time.
     */
    attemptDelivery: ({ deliveryId, now }: { deliveryId: string; now: boolean }): Promise<string> =>
      asFailure(async () => {
        const outcome = await deliveries.attempt(deliveryId, now);
        if (outcome.kind === 'settled') return outcome.status;
        throw ApplicationFailure.create({
          type: 'DeliveryFailed',
          message: `Attempt ${outcome.attempts}: ${outcome.detail}`,
          nextRetryDelay: Math.max(1, outcome.delayMs),
        });
      }),

    cancelDelivery: ({ deliveryId }: { deliveryId: string }): Promise<string> =>
      asFailure(() => deliveries.cancel(deliveryId)),
  };
}
