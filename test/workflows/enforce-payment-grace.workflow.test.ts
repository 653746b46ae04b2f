import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { BillingActivities } from '../../activities/billing.activities.ts';
import {
  ENFORCE_PAYMENT_GRACE,
  EXTEND_GRACE,
  PAYMENT_RECOVERED,
  type PaymentGraceStep,
} from '../../workflows/billing/enforce-payment-grace.contract.ts';
import {
  SUBSCRIPTION_CHANGED,
  SYNC_SUBSCRIPTION,
} from '../../workflows/billing/sync-subscription.contract.ts';
import { eventually } from '../support/eventually.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const DAY_MS = 86_400_000;
const environment = useWorkflowEnvironment();

/** A grace whose invoice is open until `pay`, and whose row suspends after `days`. */
async function openGrace(days: number) {
  const startedAt = await environment.temporal.currentTimeMs();
  let suspendAt = startedAt + days * DAY_MS;
  let isPaid = false;
  let hasEnded = false;
  let isSuspended = false;
  let outages = 0;
  const reviews: number[] = [];
  const suspensions: number[] = [];
  const step = (stage: PaymentGraceStep['stage'], until: number): PaymentGraceStep => ({
    stage,
    waitUntil: new Date(until).toISOString(),
    detail: stage,
  });
  const activities: BillingActivities = {
    syncSubscription: async () => 'active',
    requestReadBacks: async () => 0,
    expireCheckout: async () => 'none',
    settleMeteredHours: async () => 0,
    reportMeteredHours: async () => ({ reported: 0, refused: 0 }),
    async reviewGrace() {
      if (outages > 0) {
        outages -= 1;
        throw ApplicationFailure.create({ type: 'unavailable', message: 'Stripe is unavailable.' });
      }
      const now = await environment.temporal.currentTimeMs();
      reviews.push((now - startedAt) / DAY_MS);
      if (isPaid) return 'recovered';
      if (hasEnded) return 'ended';
      if (!isSuspended && now >= suspendAt) {
        isSuspended = true;
        suspensions.push((now - startedAt) / DAY_MS);
      }
      const reminders = [7, 3, 1].map((before) => suspendAt - before * DAY_MS);
      return isSuspended
        ? step('suspended', now + DAY_MS)
        : step('waiting', reminders.find((time) => time > now) ?? suspendAt);
    },
    async extendGrace({ days: more }) {
      suspendAt += more * DAY_MS;
      isSuspended = false;
    },
  };
  const taskQueue = randomUUID();
  return {
    reviews,
    suspensions,
    taskQueue,
    activities,
    pay: () => {
      isPaid = true;
    },
    end: () => {
      hasEnded = true;
    },
    fail: (times: number) => {
      outages = times;
    },
    start: () =>
      environment.temporal.client.workflow.start(ENFORCE_PAYMENT_GRACE, {
        taskQueue,
        workflowId: `payment-grace/${randomUUID()}`,
        args: [{ graceId: 'grc_1' }],
      }),
  };
}

/** Days as the reviews happened, without the delay of timers. */
const whole = (days: number[]) => days.map((day) => Math.round(day));

describe('enforcePaymentGrace', () => {
  test('reviews the invoice at the start, at each reminder and at the end, and suspends only then', async () => {
    const grace = await openGrace(15);
    await environment.withWorker(grace.taskQueue, grace.activities, async () => {
      const handle = await grace.start();
      await environment.temporal.sleep(20 * DAY_MS);
      grace.pay();
      await handle.signal(PAYMENT_RECOVERED);
      await expect(handle.result()).resolves.toBe('recovered');
    });
    expect(whole(grace.reviews).slice(0, 5)).toEqual([0, 8, 12, 14, 15]);
    expect(whole(grace.suspensions)).toEqual([15]);
  });

  test.each([0, 9, 13])('ends with a payment on day %i, without a suspension', async (day) => {
    const grace = await openGrace(15);
    await environment.withWorker(grace.taskQueue, grace.activities, async () => {
      const handle = await grace.start();
      await environment.temporal.sleep(day * DAY_MS + 1_000);
      grace.pay();
      await handle.signal(PAYMENT_RECOVERED);
      await expect(handle.result()).resolves.toBe('recovered');
    });
    expect(grace.suspensions).toEqual([]);
  });

  test('finds a payment of which the signal was lost', async () => {
    const grace = await openGrace(15);
    await environment.withWorker(grace.taskQueue, grace.activities, async () => {
      const handle = await grace.start();
      await environment.temporal.sleep(9 * DAY_MS);
      grace.pay();
      await expect(handle.result()).resolves.toBe('recovered');
    });
    expect(grace.suspensions).toEqual([]);
  });

  test.each([
    ['within the grace', 9, []],
    ['after the suspension', 20, [15]],
  ])('ends with the subscription, %s', async (_name, day, suspensions) => {
    const grace = await openGrace(15);
    await environment.withWorker(grace.taskQueue, grace.activities, async () => {
      const handle = await grace.start();
      await environment.temporal.sleep(day * DAY_MS);
      grace.end();
      await handle.signal(PAYMENT_RECOVERED);
      await expect(handle.result()).resolves.toBe('ended');
    });
    expect(whole(grace.suspensions)).toEqual(suspensions);
  });

  test('does not trust a signal without a payment', async () => {
    const grace = await openGrace(15);
    await environment.withWorker(grace.taskQueue, grace.activities, async () => {
      const handle = await grace.start();
      await handle.signal(PAYMENT_RECOVERED);
      await environment.temporal.sleep(16 * DAY_MS);
      expect(whole(grace.suspensions)).toEqual([15]);
      await handle.terminate();
    });
  });

  test('gives more time by a signal, before and after the suspension', async () => {
    const grace = await openGrace(15);
    await environment.withWorker(grace.taskQueue, grace.activities, async () => {
      const handle = await grace.start();
      await environment.temporal.sleep(DAY_MS);
      await handle.signal(EXTEND_GRACE, { days: 5 });
      await environment.temporal.sleep(20 * DAY_MS);
      expect(whole(grace.suspensions)).toEqual([20]);
      await handle.signal(EXTEND_GRACE, { days: 10 });
      await environment.temporal.sleep(15 * DAY_MS);
      expect(whole(grace.suspensions)).toEqual([20, 30]);
      await handle.terminate();
    });
  });

  test.each([[undefined], [{}], [{ days: 0 }], [{ days: 91 }], [{ days: '7' }], [{ days: 1.5 }]])(
    'ignores the extension %j, and says how it is written',
    async (argument) => {
      const grace = await openGrace(15);
      await environment.withWorker(grace.taskQueue, grace.activities, async () => {
        const handle = await grace.start();
        await handle.signal(EXTEND_GRACE, argument);
        await environment.temporal.sleep(16 * DAY_MS);
        expect(whole(grace.suspensions)).toEqual([15]);
        await handle.terminate();
      });
    },
  );

  test('suspends no organization while Stripe is down', async () => {
    const grace = await openGrace(2);
    grace.fail(300);
    await environment.withWorker(grace.taskQueue, grace.activities, async () => {
      const handle = await grace.start();
      await environment.temporal.sleep(DAY_MS);
      expect(grace.reviews).toEqual([]);
      grace.pay();
      await expect(handle.result()).resolves.toBe('recovered');
    });
    expect(grace.suspensions).toEqual([]);
  });

  test('can be canceled in the Temporal UI', async () => {
    const grace = await openGrace(15);
    await environment.withWorker(grace.taskQueue, grace.activities, async () => {
      const handle = await grace.start();
      await environment.temporal.sleep(DAY_MS);
      await handle.cancel();
      await expect(handle.result()).rejects.toThrow(WorkflowFailedError);
    });
  });
});

describe('syncSubscription', () => {
  test('reads once more for events that arrive during a read-back, and not once for each', async () => {
    const taskQueue = randomUUID();
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let reads = 0;
    const activities = {
      async syncSubscription() {
        reads += 1;
        if (reads === 1) await held;
        return 'active';
      },
    };
    await environment.withWorker(
      taskQueue,
      activities,
      async () => {
        const handle = await environment.temporal.client.workflow.start(SYNC_SUBSCRIPTION, {
          taskQueue,
          workflowId: `billing-sync/${randomUUID()}`,
          args: [{ subscriptionId: 'sub_1' }],
        });
        await eventually(async () => expect(reads).toBe(1));
        for (let event = 0; event < 3; event += 1) await handle.signal(SUBSCRIPTION_CHANGED);
        release();
        await expect(handle.result()).resolves.toBe('active');
        expect(reads).toBe(2);
      },
      { signalsWhileExecuting: true },
    );
  });
});
