import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import type { DraftActivities } from '../../activities/drafts.activities.ts';
import {
  RESCHEDULE_DRAFT,
  SEND_SCHEDULED_DRAFT,
  UNSCHEDULE_DRAFT,
} from '../../workflows/drafts/send-scheduled-draft.contract.ts';
import { HELD_FAILURE } from '../../workflows/outbound/send-message.contract.ts';
import {
  DELIVERY_OUTCOME_RECORDED,
  TRACK_DELIVERY,
  TRACKING_WINDOW_MS,
} from '../../workflows/outbound/track-delivery.contract.ts';
import { eventually } from '../support/eventually.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const HOUR_MS = 3_600_000;

const environment = useWorkflowEnvironment();

describe('trackDelivery', () => {
  const track = (taskQueue: string, openRecipients: number) =>
    environment.temporal.client.workflow.start(TRACK_DELIVERY, {
      taskQueue,
      workflowId: `delivery/${randomUUID()}`,
      args: [{ messageId: 'msg_1', openRecipients }],
    });

  test('completes with at most 12 events when every recipient has an outcome', async () => {
    const queue = randomUUID();
    await environment.withWorker(queue, {}, async () => {
      const handle = await track(queue, 1);
      await handle.signal(DELIVERY_OUTCOME_RECORDED, { openRecipients: 0 });
      await expect(handle.result()).resolves.toBe('every recipient has an outcome');
      expect((await handle.fetchHistory()).events?.length).toBeLessThanOrEqual(12);
    });
  });

  test('uses the lowest number of open recipients when signals arrive out of order', async () => {
    const queue = randomUUID();
    const handle = await track(queue, 3);
    // No worker runs yet, so all signals arrive together.
    for (const openRecipients of [2, 0, 1])
      await handle.signal(DELIVERY_OUTCOME_RECORDED, { openRecipients });
    await environment.withWorker(queue, {}, async () => {
      await expect(handle.result()).resolves.toBe('every recipient has an outcome');
    });
  });

  test('waits for open recipients until the tracking window ends', async () => {
    const queue = randomUUID();
    await environment.withWorker(queue, {}, async () => {
      const startedAt = await environment.temporal.currentTimeMs();
      const handle = await track(queue, 2);
      await handle.signal(DELIVERY_OUTCOME_RECORDED, { openRecipients: 1 });
      await expect(handle.result()).resolves.toBe('1 recipient(s) without a report');
      const waitedMs = (await environment.temporal.currentTimeMs()) - startedAt;
      expect(waitedMs).toBeGreaterThanOrEqual(TRACKING_WINDOW_MS);
      expect(waitedMs).toBeLessThan(TRACKING_WINDOW_MS + HOUR_MS);
    });
  });
});

describe('sendScheduledDraft', () => {
  function draft(results: Awaited<ReturnType<DraftActivities['sendDueDraft']>>[] = ['sent']) {
    const sentAt: number[] = [];
    let unscheduleCalls = 0;
    const activities: DraftActivities = {
      async sendDueDraft() {
        sentAt.push(await environment.temporal.currentTimeMs());
        return (results.length > 1 ? results.shift() : results[0]) ?? 'sent';
      },
      async unscheduleDraft() {
        unscheduleCalls += 1;
      },
    };
    return { activities, sentAt, unscheduleCalls: () => unscheduleCalls };
  }

  test('fails while the account is suspended, so that the same schedule can be started again', async () => {
    const queue = randomUUID();
    const { activities, unscheduleCalls } = draft(['held']);
    await environment.withWorker(queue, activities, async () => {
      const { handle } = await schedule(queue, 1_000);
      await expect(handle.result()).rejects.toMatchObject({ cause: { type: HELD_FAILURE } });
    });
    expect(unscheduleCalls()).toBe(0);
  });

  const schedule = async (taskQueue: string, inMs: number) => {
    const due = (await environment.temporal.currentTimeMs()) + inMs;
    const handle = await environment.temporal.client.workflow.start(SEND_SCHEDULED_DRAFT, {
      taskQueue,
      workflowId: `scheduled/${randomUUID()}/1`,
      args: [{ draftId: 'drf_1', scheduleVersion: 1, sendAt: new Date(due).toISOString(), version: 2 }],
    });
    return { handle, due };
  };

  test('is unscheduled while its attempts fail', async () => {
    const queue = randomUUID();
    const { activities, unscheduleCalls } = draft();
    let attempts = 0;
    activities.sendDueDraft = async () => {
      attempts += 1;
      throw new Error('A defect.');
    };
    await environment.withWorker(queue, activities, async () => {
      const { handle, due } = await schedule(queue, 1_000);
      await environment.temporal.sleep('1 minute');
      await eventually(() => expect(attempts).toBeGreaterThan(1));
      const { currentDetails } = await handle.query<{ currentDetails?: string }>(
        '__temporal_workflow_metadata',
      );
      expect(currentDetails).toContain(`due since ${new Date(due).toISOString()}`);
      await handle.signal(UNSCHEDULE_DRAFT);
      await expect(handle.result()).resolves.toBe('unscheduled');
    });
    expect(unscheduleCalls()).toBe(1);
  });

  test('sends at the scheduled time, not before', async () => {
    const queue = randomUUID();
    const { activities, sentAt } = draft();
    await environment.withWorker(queue, activities, async () => {
      const { handle, due } = await schedule(queue, 30 * 24 * HOUR_MS);
      await expect(handle.result()).resolves.toBe('sent');
      expect(sentAt[0]).toBeGreaterThanOrEqual(due);
      expect(sentAt[0]).toBeLessThan(due + 60_000);
    });
  });

  test('sends at the new time after a reschedule signal', async () => {
    const queue = randomUUID();
    const { activities, sentAt } = draft();
    await environment.withWorker(queue, activities, async () => {
      const { handle, due } = await schedule(queue, 24 * HOUR_MS);
      const earlier = due - 12 * HOUR_MS;
      await handle.signal(RESCHEDULE_DRAFT, new Date(earlier).toISOString(), 3);
      await expect(handle.result()).resolves.toBe('sent');
      expect(sentAt[0]).toBeGreaterThanOrEqual(earlier);
      expect(sentAt[0]).toBeLessThan(due);
    });
  });

  test.each([
    { what: 'with an older version', args: [1] },
    { what: 'without a version, as sent from the Temporal UI', args: [] },
  ])('ignores a reschedule signal $what', async ({ args }) => {
    const queue = randomUUID();
    const { activities, sentAt } = draft();
    await environment.withWorker(queue, activities, async () => {
      const { handle, due } = await schedule(queue, 24 * HOUR_MS);
      await handle.signal(RESCHEDULE_DRAFT, new Date(due + 48 * HOUR_MS).toISOString(), ...args);
      await expect(handle.result()).resolves.toBe('sent');
      expect(sentAt[0]).toBeLessThan(due + HOUR_MS);
    });
  });

  test('continues to wait if the draft’s row has a later time', async () => {
    const queue = randomUUID();
    const later = new Date((await environment.temporal.currentTimeMs()) + 48 * HOUR_MS);
    const { activities, sentAt } = draft([{ waitUntil: later.toISOString() }, 'sent']);
    await environment.withWorker(queue, activities, async () => {
      const { handle } = await schedule(queue, HOUR_MS);
      await expect(handle.result()).resolves.toBe('sent');
      expect(sentAt[1]).toBeGreaterThanOrEqual(later.getTime());
    });
  });

  test('ends without sending and unschedules the draft on an unschedule signal', async () => {
    const queue = randomUUID();
    const { activities, sentAt, unscheduleCalls } = draft();
    await environment.withWorker(queue, activities, async () => {
      const { handle } = await schedule(queue, HOUR_MS);
      await handle.signal(UNSCHEDULE_DRAFT);
      await expect(handle.result()).resolves.toBe('unscheduled');
    });
    expect(sentAt).toEqual([]);
    expect(unscheduleCalls()).toBe(1);
  });

  test('unschedules the draft when an operator cancels the run', async () => {
    const queue = randomUUID();
    const { activities, unscheduleCalls } = draft();
    await environment.withWorker(queue, activities, async () => {
      const { handle } = await schedule(queue, HOUR_MS);
      await handle.cancel();
      await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
    });
    expect(unscheduleCalls()).toBe(1);
  });
});
