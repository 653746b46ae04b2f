import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { MAX_LOCAL_ATTEMPTS } from '../domain/webhooks/attempt-slots.ts';
import type { DeliveryService } from '../domain/webhooks/delivery.service.ts';
import { withApplicationFailures } from './failures.ts';

export type WebhookActivities = ReturnType<typeof createWebhookActivities>;

export interface DeliveryRun {
  deliveryId: string;
  generation: number;
}

export function createWebhookActivities({ deliveries }: { deliveries: DeliveryService }) {
  let localAttempts = 0;

  /** Runs a step at once, or fails: a local activity that waits would occupy a workflow task meanwhile. */
  async function runLocally<Result>(step: () => Promise<Result>): Promise<Result> {
    if (localAttempts >= MAX_LOCAL_ATTEMPTS)
      throw ApplicationFailure.create({
        type: 'TooManyLocalAttempts',
        message: 'Left to the regular activity.',
        category: ApplicationFailureCategory.BENIGN,
      });
    localAttempts += 1;
    try {
      return await step();
    } finally {
      localAttempts -= 1;
    }
  }

  return {
    /**
     * Makes one attempt. A failed attempt throws with the exact delay until the next one: Temporal's own retry is the
     * schedule, and the UI shows the attempt count, the last result and the time of the next attempt.
     */
    attemptDelivery: ({ deliveryId, generation, now }: DeliveryRun & { now: boolean }): Promise<string> =>
      withApplicationFailures(async () => {
        const attempt = () => deliveries.attempt(deliveryId, now, generation);
        const outcome = Context.current().info.isLocal ? await runLocally(attempt) : await attempt();
        if (outcome.kind === 'settled') return outcome.status;
        const { attempts, detail, delayMs } = outcome;
        throw ApplicationFailure.create({
          type: outcome.kind === 'busy' ? 'EndpointBusy' : 'DeliveryFailed',
          message: outcome.kind === 'busy' ? detail : `Attempt ${attempts}: ${detail}`,
          nextRetryDelay: Math.max(1, delayMs),
          // Waiting for a slot or until the delivery is due is no failure, and would flood the log.
          ...(outcome.kind === 'retry' ? {} : { category: ApplicationFailureCategory.BENIGN }),
        });
      }),

    cancelDelivery: ({ deliveryId, generation }: DeliveryRun): Promise<string> =>
      withApplicationFailures(() => deliveries.cancel(deliveryId, generation)),
  };
}
