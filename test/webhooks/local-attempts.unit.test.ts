import { expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { createWebhookActivities } from '../../activities/webhooks.activities.ts';
import { MAX_LOCAL_ATTEMPTS } from '../../domain/webhooks/attempt-slots.ts';

const DELIVERY = { deliveryId: 'whd_1', generation: 1, now: false };

test('a worker makes a limited number of local attempts at a time, and leaves others to the regular activity', async () => {
  let begun = 0;
  const answer = Promise.withResolvers<void>();
  const { attemptDelivery } = createWebhookActivities({
    deliveries: {
      async attempt() {
        begun += 1;
        await answer.promise;
        return { kind: 'settled', status: 'delivered', detail: '' };
      },
      cancel: async () => 'canceled',
    },
  });
  const run = (isLocal: boolean) =>
    new MockActivityEnvironment({ isLocal }, { logger: new DefaultLogger('ERROR') }).run(
      attemptDelivery,
      DELIVERY,
    );
  const local = Array.from({ length: MAX_LOCAL_ATTEMPTS }, () => run(true));
  await expect(run(true)).rejects.toMatchObject({ type: 'TooManyLocalAttempts' });
  const regular = run(false);
  expect(begun).toBe(MAX_LOCAL_ATTEMPTS + 1);
  answer.resolve();
  await expect(Promise.all([...local, regular])).resolves.toHaveLength(MAX_LOCAL_ATTEMPTS + 1);
  await expect(run(true)).resolves.toBe('delivered');
});
