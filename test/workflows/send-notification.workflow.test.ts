import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { NotificationActivities } from '../../activities/notifications.activities.ts';
import {
  NOTIFICATION_RETRY_DELAYS_MS,
  SEND_NOTIFICATION,
} from '../../workflows/notifications/send-notification.contract.ts';
import { eventually } from '../support/eventually.ts';
import { startWorkflowEnvironment, type WorkflowTestEnvironment } from '../support/workflow-environment.ts';

let environment: WorkflowTestEnvironment;
beforeAll(async () => {
  environment = await startWorkflowEnvironment();
}, 120_000);
afterAll(() => environment?.stop());

/** A relay that defers the email until attempt `sentAt`, with the delays of the real service. */
function relay(sentAt: number) {
  const attemptedAt: number[] = [];
  let stopped = 0;
  const activities: NotificationActivities = {
    async attemptNotification() {
      attemptedAt.push(await environment.temporal.currentTimeMs());
      if (attemptedAt.length === sentAt) return 'sent';
      const delay = NOTIFICATION_RETRY_DELAYS_MS[attemptedAt.length - 1];
      if (delay === undefined) return 'failed';
      throw ApplicationFailure.create({ type: 'MailDeferred', message: '451', nextRetryDelay: delay });
    },
    async stopNotification() {
      stopped += 1;
      return 'failed';
    },
  };
  return { activities, attemptedAt, stopped: () => stopped };
}

async function start(taskQueue: string) {
  return environment.temporal.client.workflow.start(SEND_NOTIFICATION, {
    taskQueue,
    workflowId: `notification/${randomUUID()}`,
    args: [{ notificationId: 'ntf_1' }],
  });
}

describe('sendNotification', () => {
  test('records an email as failed when a defect prevents it', async () => {
    const queue = randomUUID();
    const reasons: (string | undefined)[] = [];
    const activities: NotificationActivities = {
      async attemptNotification() {
        throw ApplicationFailure.nonRetryable('x is not a function', 'TypeError');
      },
      async stopNotification({ reason }) {
        reasons.push(reason);
        return 'failed';
      },
    };
    await environment.withWorker(queue, activities, async () => {
      await expect((await start(queue)).result()).resolves.toBe('failed');
    });
    expect(reasons).toEqual(['Sending failed repeatedly (TypeError).']);
  });

  test('retries for a day with a history of 11 events', async () => {
    const queue = randomUUID();
    const { activities, attemptedAt } = relay(99);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe('failed');
      expect((await handle.fetchHistory()).events).toHaveLength(11);
    });
    const delays = attemptedAt.slice(1).map((at, index) => at - (attemptedAt[index] ?? 0));
    expect(delays).toHaveLength(NOTIFICATION_RETRY_DELAYS_MS.length);
    delays.forEach((pause, index) => {
      expect(pause).toBeGreaterThanOrEqual(NOTIFICATION_RETRY_DELAYS_MS[index] ?? 0);
      expect(pause).toBeLessThan((NOTIFICATION_RETRY_DELAYS_MS[index] ?? 0) + 60_000);
    });
  });

  test('ends when the email is sent', async () => {
    const queue = randomUUID();
    const { activities } = relay(3);
    await environment.withWorker(queue, activities, async () => {
      await expect((await start(queue)).result()).resolves.toBe('sent');
    });
  });

  test('stops the notification when canceled in the Temporal UI', async () => {
    const queue = randomUUID();
    const { activities, attemptedAt, stopped } = relay(99);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(attemptedAt).toHaveLength(1));
      await handle.cancel();
      await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
    });
    expect(stopped()).toBe(1);
  });
});
