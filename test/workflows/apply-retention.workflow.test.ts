import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { RetentionActivities } from '../../activities/retention.activities.ts';
import type { DeletionProgress, DeletionSlice } from '../../domain/retention/expired-mail.service.ts';
import {
  APPLY_RETENTION,
  DELETION_PAUSE_MS,
  MAX_SLICES_PER_RUN,
  POSTPONE_RETENTION,
} from '../../workflows/retention/apply-retention.contract.ts';
import { START_RETENTION } from '../../workflows/retention/start-retention.contract.ts';
import { eventually } from '../support/eventually.ts';
import { startWorkflowEnvironment, type WorkflowTestEnvironment } from '../support/workflow-environment.ts';

const CUTOFF = '2026-11-01T03:00:00.000Z';
const CURSOR = { environmentId: 'env_1', after: 'msg_1' };

let environment: WorkflowTestEnvironment;
beforeAll(async () => {
  environment = await startWorkflowEnvironment();
}, 120_000);
afterAll(() => environment?.stop());

type Deletion = (from: DeletionProgress) => DeletionSlice | Promise<DeletionSlice>;
const deletedUntil = (from: DeletionProgress, end: DeletionSlice['end'], detail = ''): DeletionSlice => ({
  messages: from.messages + 200,
  threads: from.threads + 10,
  cursor: CURSOR,
  end,
  detail,
});

/** The review returns `cutoff`. Each deletion runs the next of `deletions`; the last one repeats. */
function createFakeActivities({ cutoff = CUTOFF as string | null, deletions = [] as Deletion[] } = {}) {
  const startPoints: DeletionProgress[] = [];
  const postponements: number[] = [];
  let reviews = 0;
  const activities: RetentionActivities = {
    async reviewRetention() {
      reviews += 1;
      return { cutoff, warnings: 1 };
    },
    async deleteExpiredMail({ from }) {
      startPoints.push(from);
      const deletion = deletions.length > 1 ? deletions.shift() : deletions[0];
      return deletion ? deletion(from) : deletedUntil(from, 'done');
    },
    async postponeRetention({ days }) {
      postponements.push(days);
      return `postponed for ${days} days`;
    },
    startRetentionRuns: async () => 3,
  };
  return { activities, startPoints, postponements, reviews: () => reviews };
}

const start = (taskQueue: string, workflowId = `retention/${randomUUID()}`) =>
  environment.temporal.client.workflow.start(APPLY_RETENTION, {
    taskQueue,
    workflowId,
    args: [{ organizationId: 'org_1' }],
  });

describe('applyRetention', () => {
  test('warns and deletes nothing before the first deletion', async () => {
    const queue = randomUUID();
    const { activities, startPoints } = createFakeActivities({ cutoff: null });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe('1 warning(s) sent; nothing to delete');
      expect((await handle.fetchHistory()).events).toHaveLength(11);
    });
    expect(startPoints).toEqual([]);
  });

  test('deletes in slices, each continuing after the last, with a pause in between', async () => {
    const queue = randomUUID();
    const more: Deletion = (from) => deletedUntil(from, 'more');
    const { activities, startPoints } = createFakeActivities({
      deletions: [more, more, (from) => deletedUntil(from, 'done')],
    });
    await environment.withWorker(queue, activities, async () => {
      const startedAt = await environment.temporal.currentTimeMs();
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe(
        `1 warning(s) sent; deleted 600 message(s), 30 thread(s) from before ${CUTOFF}`,
      );
      const tookMs = (await environment.temporal.currentTimeMs()) - startedAt;
      expect(tookMs).toBeGreaterThanOrEqual(2 * DELETION_PAUSE_MS);
    });
    expect(startPoints.map(({ messages, cursor }) => [messages, cursor])).toEqual([
      [0, null],
      [200, CURSOR],
      [400, CURSOR],
    ]);
  });

  test('leaves the rest to the next daily run and keeps its history small', async () => {
    const queue = randomUUID();
    const { activities, startPoints } = createFakeActivities({
      deletions: [(from) => deletedUntil(from, 'more')],
    });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toContain('the next daily run continues');
      expect((await handle.fetchHistory()).events?.length).toBeLessThan(3_000);
    });
    expect(startPoints).toHaveLength(MAX_SLICES_PER_RUN);
  }, 170_000);

  test('retries a failed deletion and continues', async () => {
    const queue = randomUUID();
    const fail: Deletion = () => {
      throw ApplicationFailure.create({ type: 'Down', message: 'the database is down' });
    };
    const { activities, startPoints, reviews } = createFakeActivities({
      deletions: [fail, fail, (from) => deletedUntil(from, 'done')],
    });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toContain('deleted 200 message(s)');
    });
    expect(startPoints).toHaveLength(3);
    expect(reviews()).toBe(1);
  });

  test('fails if deletion fails all day, which lets the next daily run start', async () => {
    const queue = randomUUID();
    const fail: Deletion = () => {
      throw ApplicationFailure.create({ type: 'Down', message: 'down' });
    };
    const { activities } = createFakeActivities({ deletions: [fail] });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
    });
  });

  test('ends after the current batch when postponed', async () => {
    const queue = randomUUID();
    const postponed = Promise.withResolvers<void>();
    const isDeleting = Promise.withResolvers<void>();
    const { activities, postponements } = createFakeActivities({
      deletions: [
        async (from) => {
          isDeleting.resolve();
          await postponed.promise;
          return deletedUntil(from, 'stopped', 'Postponed until then.');
        },
      ],
    });
    const record = activities.postponeRetention;
    activities.postponeRetention = async (request) => {
      postponed.resolve();
      return record(request);
    };
    await environment.withWorker(
      queue,
      activities,
      async () => {
        const handle = await start(queue);
        await isDeleting.promise;
        await handle.signal(POSTPONE_RETENTION, { days: 14 });
        await expect(handle.result()).resolves.toBe(
          `1 warning(s) sent; deleted 200 message(s), 10 thread(s) from before ${CUTOFF}; stopped: Postponed until then.; postponed for 14 days`,
        );
      },
      { signalsWhileExecuting: true },
    );
    expect(postponements).toEqual([14]);
  });

  test('ignores invalid postponements', async () => {
    const queue = randomUUID();
    const { activities, postponements } = createFakeActivities();
    const handle = await start(queue);
    // No worker runs yet, so all signals arrive before the run's first step.
    for (const request of [{ days: 0 }, { days: 91 }, { days: '7' }, {}, undefined, 3])
      await handle.signal(POSTPONE_RETENTION, request);
    await handle.signal(POSTPONE_RETENTION, { days: 90 });
    await environment.withWorker(queue, activities, async () => {
      await expect(handle.result()).resolves.toContain('postponed for 90 days');
    });
    expect(postponements).toEqual([90]);
  });

  test('ends as canceled after the current batch when canceled in the Temporal UI', async () => {
    const queue = randomUUID();
    let hasEnded = false;
    const isDeleting = Promise.withResolvers<void>();
    const { activities, startPoints } = createFakeActivities({
      deletions: [
        async () => {
          const { cancellationSignal, heartbeat } = heartbeatContext();
          isDeleting.resolve();
          while (!cancellationSignal.aborted) await heartbeat();
          hasEnded = true;
          throw new CancelledFailure('CANCELLED');
        },
      ],
    });
    await environment.withWorker(
      queue,
      activities,
      async () => {
        const handle = await start(queue);
        await isDeleting.promise;
        await handle.cancel();
        await expect(handle.result()).rejects.toMatchObject({ cause: expect.any(CancelledFailure) });
      },
      { signalsWhileExecuting: true },
    );
    expect(hasEnded).toBe(true);
    expect(startPoints).toHaveLength(1);
  });

  /** Receives cancellations through heartbeats, like the real activity. */
  function heartbeatContext() {
    const context = Context.current();
    return {
      cancellationSignal: context.cancellationSignal,
      async heartbeat() {
        context.heartbeat();
        await new Promise((resolve) => setTimeout(resolve, 20));
      },
    };
  }

  test('lets the next daily run start after a termination', async () => {
    const queue = randomUUID();
    const ended = Promise.withResolvers<void>();
    const { activities, startPoints } = createFakeActivities({
      deletions: [
        async (from) => {
          await ended.promise;
          return deletedUntil(from, 'done');
        },
        (from) => deletedUntil(from, 'done'),
      ],
    });
    await environment.withWorker(
      queue,
      activities,
      async () => {
        const first = await start(queue, 'retention/org_terminated/2026-12-01');
        await eventually(() => expect(startPoints).toHaveLength(1));
        await first.terminate();
        ended.resolve();
        await expect(first.result()).rejects.toBeInstanceOf(WorkflowFailedError);
        const second = await start(queue, 'retention/org_terminated/2026-12-02');
        await expect(second.result()).resolves.toContain('deleted 200 message(s)');
      },
      { signalsWhileExecuting: true },
    );
  });
});

test('startRetention starts the runs that are due', async () => {
  const queue = randomUUID();
  await environment.withWorker(queue, createFakeActivities().activities, async () => {
    const handle = await environment.temporal.client.workflow.start(START_RETENTION, {
      taskQueue: queue,
      workflowId: randomUUID(),
    });
    await expect(handle.result()).resolves.toBe(3);
  });
});
