import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { DeliveryService } from '../domain/webhooks/delivery.service.ts';
import { withApplicationFailures } from './failures.ts';

export type WebhookActivities = ReturnType<typeof createWebhookActivities>;

export interface DeliveryRun {
  deliveryId: string;
  generation: number;
}

export function createWebhookActivities({ deliveries }: { deliveries: DeliveryService }) {
  return {
    /**
     * Makes one attempt. A failed attempt throws with the exact delay until the next one: Temporal's own retry is the
     * schedule, and the UI shows the attempt count, the last result and the time of the next attempt.
     */
    attemptDelivery: ({ deliveryId, generation, now }: DeliveryRun & { now: boolean }): Promise<string> =>
      withApplicationFailures(async () => {
        const outcome = await deliveries.attempt(deliveryId, now, generation);
        if (outcome.kind === 'settled') return outcome.status;
        const { attempts, detail, delayMs } = outcome;
        throw ApplicationFailure.create({
          type: outcome.kind === 'retry' ? 'DeliveryFailed' : 'EndpointBusy',
          message: outcome.kind === 'retry' ? `Attempt ${attempts}: ${detail}` : detail,
          nextRetryDelay: Math.max(1, delayMs),
          // Waiting for a slot is no failure, and would flood the log.
          ...(outcome.kind === 'busy' ? { category: ApplicationFailureCategory.BENIGN } : {}),
        });
      }),

    cancelDelivery: ({ deliveryId, generation }: DeliveryRun): Promise<string> =>
      withApplicationFailures(() => deliveries.cancel(deliveryId, generation)),
  };
}
