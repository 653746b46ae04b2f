import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { DeletionActivities } from '../../activities/deletions.activities.ts';
import type { BegunPurge } from '../../domain/deletions/deletion-purge.service.ts';
import type { PurgeSlice } from '../../domain/deletions/organization-purge.ts';
import {
  CANCEL_PURGE,
  MAX_SLICES_PER_RUN,
  PURGE_ACCOUNT,
  PURGE_ORGANIZATION,
} from '../../workflows/deletions/purge.contract.ts';
import { eventually } from '../support/eventually.ts';
import { untilActivityCancelRequested } from '../support/until-activity-cancel-requested.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const environment = useWorkflowEnvironment();
const DAY_MS = 86_400_000;

type Step = [name: string, atDay: number];

/** Records the steps with the day on which they ran, counted from the start. */
function createFakeActivities({
  begun = ['purging'] as BegunPurge[],
  slices = [{ isDone: true, rows: 7 }] as (PurgeSlice | Error)[],
  stopped = 'stopped',
} = {}) {
  const steps: Step[] = [];
  let startedAt = 0;
  const record = async (name: string) => {
    const now = await environment.temporal.currentTimeMs();
    startedAt ||= now;
    steps.push([name, Math.round((now - startedAt) / DAY_MS)]);
  };
  const next = <T>(values: T[]): T => (values.length > 1 ? (values.shift() as T) : (values[0] as T));
  const activities: DeletionActivities = {
    async remindOfPurge({ daysLeft }) {
      await record(`remind ${daysLeft}`);
      return 1;
    },
    async beginPurge() {
      await record('begin');
      return next(begun);
    },
    async stopPurge() {
      await record('stop');
      return stopped;
    },
    async purgeAccountData() {
      await record('purge');
      return 'purged: deleted the account';
    },
    async purgeOrganizationData() {
      const slice = next(slices);
      await record('slice');
      if (slice instanceof Error) throw slice;
      return slice;
    },
  };
  return {
    activities,
    steps,
    startAt: (ms: number) => (startedAt = ms),
    names: () => steps.map(([name]) => name),
  };
}

async function start(
  taskQueue: string,
  { type = PURGE_ACCOUNT as string, days = 30, workflowId = `purge/${randomUUID()}`, input = {} } = {},
) {
  const now = await environment.temporal.currentTimeMs();
  const handle = await environment.temporal.client.workflow.start(type, {
    taskQueue,
    workflowId,
    args: [{ deletionId: 'del_1', dueAt: new Date(now + days * DAY_MS).toISOString(), ...input }],
  });
  return { handle, now };
}

describe('a purge', () => {
  test('reminds a week and a day before, and begins after 30 days', async () => {
    const queue = randomUUID();
    const { activities, steps, startAt } = createFakeActivities();
    await environment.withWorker(queue, activities, async () => {
      const { handle, now } = await start(queue);
      startAt(now);
      await expect(handle.result()).resolves.toBe('purged: deleted the account');
    });
    expect(steps).toEqual([
      ['remind 7', 23],
      ['remind 1', 29],
      ['begin', 30],
      ['purge', 30],
    ]);
  });

  test.each([
    [29.5, ['remind 7', 'remind 1', 'begin', 'purge']],
    [5, ['remind 7', 'remind 1', 'begin', 'purge']],
    [0.5, ['remind 1', 'begin', 'purge']],
    [-2, ['begin', 'purge']],
  ])(
    'that starts %d days before it is due sends the reminders that still make sense',
    async (days, expected) => {
      const queue = randomUUID();
      const { activities, names } = createFakeActivities();
      await environment.withWorker(queue, activities, async () => {
        const { handle } = await start(queue, { days });
        await handle.result();
      });
      expect(names()).toEqual(expected);
    },
  );

  test.each([
    ['expires an open checkout first', 2],
    ['continues without, after a day: the checkout has expired by itself', Number.POSITIVE_INFINITY],
  ])('of an organization %s', async (_name, failures) => {
    const queue = randomUUID();
    const { activities, names, steps, startAt } = createFakeActivities();
    let attempts = 0;
    const expireCheckout = async () => {
      attempts += 1;
      if (attempts <= failures) throw ApplicationFailure.create({ type: 'unavailable' });
      steps.push(['expire', 0]);
      return 'expired';
    };
    await environment.withWorker(queue, { ...activities, expireCheckout }, async () => {
      const { handle, now } = await start(queue, {
        type: PURGE_ORGANIZATION,
        days: 2,
        input: { expiresCheckout: true },
      });
      startAt(now);
      await expect(handle.result()).resolves.toBe('purged: deleted 7 row(s)');
    });
    expect(attempts).toBeGreaterThan(2);
    expect(names()).toEqual([
      ...(failures === 2 ? ['expire'] : []),
      'remind 7',
      'remind 1',
      'begin',
      'slice',
    ]);
  });

  test.each([
    ['recovered', 'recovered'],
    ['stopped', 'stopped'],
  ])('ends as %s by the signal, as the row says', async (status, result) => {
    const queue = randomUUID();
    const { activities, names } = createFakeActivities({ stopped: status });
    await environment.withWorker(queue, activities, async () => {
      const { handle } = await start(queue);
      await handle.signal(CANCEL_PURGE);
      await expect(handle.result()).resolves.toBe(result);
    });
    expect(names()).toEqual(['stop']);
  });

  test('ends without purging if the row says that it was recovered, and waits if it is not due yet', async () => {
    const queue = randomUUID();
    const { activities, names } = createFakeActivities({ begun: ['not_due', 'recovered'] });
    await environment.withWorker(queue, activities, async () => {
      const { handle } = await start(queue, { days: -1 });
      await expect(handle.result()).resolves.toBe('recovered');
    });
    expect(names()).toEqual(['begin', 'begin']);
  });

  test('ignores the signal once it has begun', async () => {
    const queue = randomUUID();
    const { activities, names } = createFakeActivities({
      slices: [
        { isDone: false, rows: 3 },
        { isDone: true, rows: 4 },
      ],
    });
    const started = Promise.withResolvers<WorkflowHandle>();
    let signals = 0;
    const purgeOrganizationData: DeletionActivities['purgeOrganizationData'] = async (input) => {
      await (await started.promise).signal(CANCEL_PURGE);
      signals += 1;
      return activities.purgeOrganizationData(input);
    };
    await environment.withWorker(
      queue,
      { ...activities, purgeOrganizationData },
      async () => {
        const { handle } = await start(queue, { type: PURGE_ORGANIZATION, days: -1 });
        started.resolve(handle);
        await expect(handle.result()).resolves.toBe('purged: deleted 7 row(s)');
      },
      { signalsWhileExecuting: true },
    );
    expect(signals).toBe(2);
    expect(names()).toEqual(['begin', 'slice', 'slice']);
  });

  test('records that an operator canceled the run while it waits', async () => {
    const queue = randomUUID();
    const { activities, names } = createFakeActivities();
    await environment.withWorker(queue, activities, async () => {
      const { handle } = await start(queue, { type: PURGE_ORGANIZATION });
      await handle.cancel();
      await expect(handle.result()).rejects.toMatchObject({ cause: expect.any(CancelledFailure) });
    });
    expect(names()).toEqual(['stop']);
  });

  test('records that an operator canceled the run while it purges, after the slice', async () => {
    const queue = randomUUID();
    const { activities, names } = createFakeActivities({ slices: [{ isDone: false, rows: 1 }] });
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const purgeOrganizationData: typeof activities.purgeOrganizationData = async (input) => {
      const slice = await activities.purgeOrganizationData(input);
      await held;
      return slice;
    };
    await environment.withWorker(
      queue,
      { ...activities, purgeOrganizationData },
      async () => {
        const { handle } = await start(queue, { type: PURGE_ORGANIZATION, days: -1 });
        await eventually(() => expect(names()).toContain('slice'));
        await handle.cancel();
        await untilActivityCancelRequested(handle);
        release();
        await expect(handle.result()).rejects.toMatchObject({ cause: expect.any(CancelledFailure) });
      },
      { signalsWhileExecuting: true },
    );
    expect(names()).toEqual(['begin', 'slice', 'stop']);
  });

  test('of an organization retries a failed slice, and continues as a new run after many', async () => {
    const queue = randomUUID();
    const more: PurgeSlice = { isDone: false, rows: 1 };
    const { activities, names } = createFakeActivities({
      slices: [
        ApplicationFailure.create({ type: 'Down', message: 'down' }),
        ...Array.from({ length: MAX_SLICES_PER_RUN + 2 }, () => more),
        { isDone: true, rows: 1 },
      ],
    });
    await environment.withWorker(queue, activities, async () => {
      const { handle } = await start(queue, { type: PURGE_ORGANIZATION, days: -1 });
      await expect(handle.result()).resolves.toBe('purged: deleted 3 row(s)');
      expect((await handle.fetchHistory()).events?.length).toBeLessThan(100);
    });
    expect(names().filter((name) => name === 'begin')).toHaveLength(2);
  }, 120_000);

  test('can start again under its id after a termination, not after its end', async () => {
    const queue = randomUUID();
    const { activities } = createFakeActivities();
    const workflowId = `purge/${randomUUID()}`;
    await environment.withWorker(queue, activities, async () => {
      const { handle } = await start(queue, { workflowId });
      await handle.terminate();
      await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
      const { handle: second } = await start(queue, { workflowId, days: -1 });
      await expect(second.result()).resolves.toContain('purged');
    });
  });
});
