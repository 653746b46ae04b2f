import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { WebhookJobActivities } from '../../activities/webhook-jobs.activities.ts';
import { RUN_BULK_JOB } from '../../workflows/webhooks/run-bulk-job.contract.ts';
import { eventually } from '../support/eventually.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const environment = useWorkflowEnvironment();

const start = (taskQueue: string) =>
  environment.temporal.client.workflow.start(RUN_BULK_JOB, {
    taskQueue,
    workflowId: `webhook-job/${randomUUID()}`,
    args: [{ jobId: 'whj_1' }],
  });

describe('runBulkJob', () => {
  test('resumes after a worker crash', async () => {
    const queue = randomUUID();
    let runs = 0;
    const activities: WebhookJobActivities = {
      async processBulkJob() {
        runs += 1;
        if (runs === 1) throw ApplicationFailure.create({ type: 'Died', message: 'the worker died' });
        return 'completed: 450 deliveries';
      },
      stopBulkJob: async () => undefined,
    };
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe('completed: 450 deliveries');
      expect((await handle.fetchHistory()).events).toHaveLength(11);
    });
    expect(runs).toBe(2);
  });

  test('stops the job when canceled in the Temporal UI', async () => {
    const queue = randomUUID();
    const stopped: string[] = [];
    let runs = 0;
    const activities: WebhookJobActivities = {
      async processBulkJob() {
        runs += 1;
        throw ApplicationFailure.create({ type: 'Down', message: 'down', nextRetryDelay: '10 hours' });
      },
      async stopBulkJob({ jobId }) {
        stopped.push(jobId);
      },
    };
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(runs).toBe(1));
      await handle.cancel();
      await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
    });
    expect(stopped).toEqual(['whj_1']);
  });
});
