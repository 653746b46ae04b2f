import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { WebhookActivities } from '../../activities/webhooks.activities.ts';
import {
  CANCEL_DELIVERY,
  DELIVER_WEBHOOK,
  type DeliverWebhookInput,
  RETRY_DELIVERY_NOW,
  WEBHOOK_SCHEDULE_MS,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { eventually } from '../support/eventually.ts';
import { cancelDuringAttempt, holdingAttempt } from '../support/holding-attempt.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const environment = useWorkflowEnvironment();

/**
 * A receiver that fails before attempt `successAt`, with the retry delays of the real activity, which attempts nothing before the
 * delivery is due.
 */
async function receiver(successAt: number) {
  const attemptedAt: number[] = [];
  const requestedNow: boolean[] = [];
  let canceled = 0;
  let dueAt = 0;
  // The test server may skip time while a local activity waits for an answer, so a local one reads its own clock.
  const skew = (await environment.temporal.currentTimeMs()) - Date.now();
  const readTime = async () =>
    Context.current().info.isLocal ? Date.now() + skew : await environment.temporal.currentTimeMs();
  const activities: WebhookActivities = {
    async attemptDelivery({ now }) {
      const at = await readTime();
      if (at >= dueAt || now) {
        attemptedAt.push(at);
        requestedNow.push(now);
        if (attemptedAt.length === successAt) return 'delivered';
        const delay = WEBHOOK_SCHEDULE_MS[attemptedAt.length];
        if (delay === undefined) return 'exhausted';
        dueAt = at + delay;
      }
      throw ApplicationFailure.create({
        type: 'DeliveryFailed',
        message: 'HTTP 500',
        nextRetryDelay: Math.max(1, dueAt - at),
      });
    },
    async cancelDelivery() {
      canceled += 1;
      return 'canceled';
    },
  };
  return { activities, attemptedAt, nows: requestedNow, canceled: () => canceled };
}

const INPUT: DeliverWebhookInput = {
  deliveryId: 'whd_1',
  generation: 1,
  endpointId: 'whe_1',
  attemptsLocally: true,
};
const OLDER: DeliverWebhookInput = { ...INPUT, attemptsLocally: false };

async function start(taskQueue: string, input: DeliverWebhookInput = INPUT) {
  return environment.temporal.client.workflow.start(DELIVER_WEBHOOK, {
    taskQueue,
    workflowId: `webhook/${randomUUID()}`,
    args: [input],
  });
}

type Handle = Awaited<ReturnType<typeof start>>;

async function historyLength(workflowId: string): Promise<number> {
  const history = await environment.temporal.client.workflow.getHandle(workflowId).fetchHistory();
  return history.events?.length ?? 0;
}

describe('deliverWebhook', () => {
  test.each([
    { events: 6, name: 'delivered at once', successAt: 1, input: INPUT },
    { events: 12, name: 'delivered by the second attempt', successAt: 2, input: INPUT },
    { events: 11, name: 'of an older version', successAt: 2, input: OLDER },
  ])('has $events events if it is $name', async ({ events, successAt, input }) => {
    const queue = randomUUID();
    const { activities, attemptedAt } = await receiver(successAt);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue, input);
      await expect(handle.result()).resolves.toBe('delivered');
      await expect(historyLength(handle.workflowId)).resolves.toBe(events);
    });
    expect(attemptedAt).toHaveLength(successAt);
  });

  test.each(
    ['held', 'held: usage limit of webhook_deliveries reached'].flatMap((status) => [
      { status, by: 'the signal', cancel: (handle: Handle) => handle.signal(CANCEL_DELIVERY) },
      { status, by: 'an ended run', cancel: (handle: Handle) => handle.cancel() },
    ]),
  )('cancels a delivery by $by during an attempt that ends as “$status”', async ({ status, cancel }) => {
    const queue = randomUUID();
    const { activities, canceled } = await receiver(1);
    const attempt = holdingAttempt(status);
    activities.attemptDelivery = attempt.run;
    const run = async () => {
      const handle = await start(queue, OLDER);
      await cancelDuringAttempt(handle, attempt, () => cancel(handle));
    };
    await environment.withWorker(queue, activities, run, { signalsWhileExecuting: true });
    expect(canceled()).toBe(1);
  });

  test('makes 8 attempts on the schedule, still with 12 events', async () => {
    const queue = randomUUID();
    const { activities, attemptedAt } = await receiver(99);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe('exhausted');
      await expect(historyLength(handle.workflowId)).resolves.toBe(12);
    });
    const delays = attemptedAt.slice(1).map((at, index) => at - (attemptedAt[index] ?? 0));
    expect(attemptedAt).toHaveLength(8);
    delays.forEach((pause, index) => {
      const scheduled = WEBHOOK_SCHEDULE_MS[index + 1] ?? 0;
      expect(pause).toBeGreaterThanOrEqual(scheduled);
      expect(pause).toBeLessThan(scheduled + 60_000);
    });
  });

  test('retryNow starts an attempt during the backoff', async () => {
    const queue = randomUUID();
    const { activities, attemptedAt, nows: requestedNow } = await receiver(2);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(attemptedAt).toHaveLength(1));
      await handle.signal(RETRY_DELIVERY_NOW);
      await expect(handle.result()).resolves.toBe('delivered');
    });
    expect(requestedNow).toEqual([false, true]);
  });

  test('retryNow of a replay wakes the run, and lets the row decide whether an attempt is due', async () => {
    const queue = randomUUID();
    const { activities, attemptedAt, nows: requestedNow } = await receiver(2);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(attemptedAt).toHaveLength(1));
      await handle.signal(RETRY_DELIVERY_NOW, { isDue: true });
      await expect(handle.result()).resolves.toBe('delivered');
    });
    expect(requestedNow).toEqual([false, false]);
  });

  /** Signal-with-start, as the outbox uses it: the signal arrives before the run's first step. */
  const startWith = (signal: string, taskQueue: string) =>
    environment.temporal.client.workflow.signalWithStart(DELIVER_WEBHOOK, {
      taskQueue,
      workflowId: `webhook/${randomUUID()}`,
      args: [INPUT],
      signal,
      signalArgs: [],
    });

  test('attempts immediately when started with retryNow', async () => {
    const queue = randomUUID();
    const { activities, nows: requestedNow } = await receiver(1);
    await environment.withWorker(queue, activities, async () => {
      const handle = await startWith(RETRY_DELIVERY_NOW, queue);
      await expect(handle.result()).resolves.toBe('delivered');
    });
    expect(requestedNow).toEqual([true]);
  });

  test('waits for the schedule after an immediate attempt that fails', async () => {
    const queue = randomUUID();
    const { activities, attemptedAt } = await receiver(2);
    await environment.withWorker(queue, activities, async () => {
      const handle = await startWith(RETRY_DELIVERY_NOW, queue);
      await expect(handle.result()).resolves.toBe('delivered');
    });
    const [first = 0, second = 0] = attemptedAt;
    expect(second - first).toBeGreaterThanOrEqual(WEBHOOK_SCHEDULE_MS[1]);
  });

  test('makes no attempt when started with cancel', async () => {
    const queue = randomUUID();
    const { activities, attemptedAt, canceled } = await receiver(1);
    await environment.withWorker(queue, activities, async () => {
      const handle = await startWith(CANCEL_DELIVERY, queue);
      await expect(handle.result()).resolves.toBe('canceled');
    });
    expect([attemptedAt.length, canceled()]).toEqual([0, 1]);
  });

  test('waits for a slot many times, still with 12 events', async () => {
    const queue = randomUUID();
    let calls = 0;
    const activities: WebhookActivities = {
      async attemptDelivery({ generation }) {
        calls += 1;
        expect(generation).toBe(2);
        if (calls === 100) return 'delivered';
        throw ApplicationFailure.create({ type: 'EndpointBusy', message: 'busy', nextRetryDelay: 60_000 });
      },
      cancelDelivery: async () => 'canceled',
    };
    await environment.withWorker(queue, activities, async () => {
      const handle = await environment.temporal.client.workflow.start(DELIVER_WEBHOOK, {
        taskQueue: queue,
        workflowId: `webhook/${randomUUID()}`,
        args: [{ ...INPUT, generation: 2 }],
        priority: { fairnessKey: 'org_1' },
      });
      await expect(handle.result()).resolves.toBe('delivered');
      await expect(historyLength(handle.workflowId)).resolves.toBe(12);
    });
    expect(calls).toBe(100);
  });

  test('shares attempts by endpoint, also if the run has another key', async () => {
    const queue = randomUUID();
    await environment.withWorker(queue, (await receiver(2)).activities, async () => {
      const handle = await environment.temporal.client.workflow.start(DELIVER_WEBHOOK, {
        taskQueue: queue,
        workflowId: `webhook/${randomUUID()}`,
        args: [INPUT],
        priority: { priorityKey: 3, fairnessKey: 'org_1' },
      });
      await handle.result();
      const { events } = await handle.fetchHistory();
      const keyOf = (type: 'workflowExecutionStarted' | 'activityTaskScheduled') =>
        events?.map((event) => event[`${type}EventAttributes`]?.priority?.fairnessKey).find(Boolean);
      expect(keyOf('workflowExecutionStarted')).toBe('org_1');
      expect(keyOf('activityTaskScheduled')).toBe('whe_1');
    });
  });

  test('cancel cancels the delivery and ends the run', async () => {
    const queue = randomUUID();
    const { activities, attemptedAt, canceled } = await receiver(99);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(attemptedAt).toHaveLength(1));
      await handle.signal(CANCEL_DELIVERY);
      await expect(handle.result()).resolves.toBe('canceled');
    });
    expect(canceled()).toBe(1);
  });

  test('cancels the delivery when canceled in the Temporal UI', async () => {
    const queue = randomUUID();
    const { activities, attemptedAt, canceled } = await receiver(99);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(attemptedAt).toHaveLength(1));
      await handle.cancel();
      await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
    });
    expect(canceled()).toBe(1);
  });
});
