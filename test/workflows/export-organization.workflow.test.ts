import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { ExportActivities } from '../../activities/exports.activities.ts';
import { CANCEL_EXPORT, EXPORT_ORGANIZATION } from '../../workflows/exports/export-organization.contract.ts';
import { eventually } from '../support/eventually.ts';
import { startWorkflowEnvironment, type WorkflowTestEnvironment } from '../support/workflow-environment.ts';

let environment: WorkflowTestEnvironment;
beforeAll(async () => {
  environment = await startWorkflowEnvironment();
}, 120_000);
afterAll(() => environment?.stop());

const start = (taskQueue: string) =>
  environment.temporal.client.workflow.start(EXPORT_ORGANIZATION, {
    taskQueue,
    workflowId: `export/${randomUUID()}`,
    args: [{ exportId: 'exp_1' }],
  });

type AbortInput = Parameters<ExportActivities['abortExport']>[0];

function createFakeActivities(writeArchive: ExportActivities['writeArchive']) {
  const aborted: AbortInput[] = [];
  const activities: ExportActivities = {
    writeArchive,
    async abortExport(request) {
      aborted.push(request);
      return request.status;
    },
  };
  return { activities, aborted };
}

const createStorageFailure = () =>
  ApplicationFailure.create({
    type: 'StorageError',
    message: 'Storage could not put a part of exports/exp_1.zip: connect ECONNREFUSED 10.0.0.5:9000',
  });

describe('exportOrganization', () => {
  test('writes until the archive is ready, despite hours without storage', async () => {
    const queue = randomUUID();
    let calls = 0;
    const { activities, aborted } = createFakeActivities(async () => {
      calls += 1;
      if (calls < 100) throw createStorageFailure();
      return { status: 'ready', progress: 'all' };
    });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe('ready');
      expect((await handle.describe()).searchAttributes?.Stage).toEqual(['ready']);
    });
    expect(calls).toBe(100);
    expect(aborted).toEqual([]);
  });

  test.each([
    ['storage', createStorageFailure(), 'Storage was unavailable for too long.'],
    ['a database', new Error('select 1 - no such table'), 'Writing the archive failed.'],
  ])('fails without %s for two days and shows details only in Temporal', async (_name, failure, detail) => {
    const queue = randomUUID();
    let calls = 0;
    const { activities, aborted } = createFakeActivities(async () => {
      calls += 1;
      throw failure;
    });
    await environment.withWorker(queue, activities, async () => {
      const failed = await (await start(queue)).result().catch((error) => error);
      expect(failed).toBeInstanceOf(WorkflowFailedError);
      expect(failed.cause.cause.message).toBe(failure.message);
    });
    expect(calls).toBeGreaterThan(100);
    expect(aborted).toEqual([{ exportId: 'exp_1', status: 'failed', detail }]);
  });

  test('waits for the writing activity after a cancel signal, then removes the upload', async () => {
    const queue = randomUUID();
    const order: string[] = [];
    const { activities, aborted } = createFakeActivities(async () => {
      order.push('writing');
      const context = Context.current();
      const timer = setInterval(() => context.heartbeat(), 50);
      try {
        return await context.cancelled;
      } finally {
        clearInterval(timer);
        order.push('ended');
      }
    });
    await environment.withWorker(
      queue,
      activities,
      async () => {
        const handle = await start(queue);
        await eventually(() => expect(order).toEqual(['writing']));
        await handle.signal(CANCEL_EXPORT);
        await expect(handle.result()).resolves.toBe('canceled');
      },
      { signalsWhileExecuting: true },
    );
    expect(order).toEqual(['writing', 'ended']);
    expect(aborted).toEqual([{ exportId: 'exp_1', status: 'canceled', detail: 'Canceled.' }]);
  });

  test('marks the export as canceled when canceled in the Temporal UI', async () => {
    const queue = randomUUID();
    let calls = 0;
    const { activities, aborted } = createFakeActivities(async () => {
      calls += 1;
      throw ApplicationFailure.create({ type: 'Down', message: 'down', nextRetryDelay: '10 hours' });
    });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(calls).toBe(1));
      await handle.cancel();
      await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
    });
    expect(aborted).toEqual([{ exportId: 'exp_1', status: 'canceled', detail: 'Canceled by an operator.' }]);
  });

  test('cleans up and ends if the row is already canceled', async () => {
    const queue = randomUUID();
    const { activities, aborted } = createFakeActivities(async () => ({ status: 'canceled', progress: '' }));
    await environment.withWorker(queue, activities, async () => {
      await expect((await start(queue)).result()).resolves.toBe('canceled');
    });
    expect(aborted).toHaveLength(1);
  });
});
