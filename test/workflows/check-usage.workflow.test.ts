import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import type { UsageAlertActivities } from '../../activities/usage-alerts.activities.ts';
import { CHECK_USAGE } from '../../workflows/usage-alerts/check-usage.contract.ts';
import { startWorkflowEnvironment, type WorkflowTestEnvironment } from '../support/workflow-environment.ts';

let environment: WorkflowTestEnvironment;
beforeAll(async () => {
  environment = await startWorkflowEnvironment();
}, 120_000);
afterAll(() => environment?.stop());

const run = (notifyThresholds: UsageAlertActivities['notifyThresholds']) => {
  const taskQueue = randomUUID();
  return environment.withWorker(taskQueue, { notifyThresholds }, async () => {
    const handle = await environment.temporal.client.workflow.start(CHECK_USAGE, {
      taskQueue,
      workflowId: `check-usage/${randomUUID()}`,
      args: [],
    });
    return handle.result();
  });
};

test('retries a failed check before the next one is due', async () => {
  const attempts: number[] = [];
  const result = await run(async () => {
    attempts.push(await environment.temporal.currentTimeMs());
    if (attempts.length < 4) throw new Error('The database is down');
    return { organizations: 3, notified: 1 };
  });
  expect(result).toEqual({ organizations: 3, notified: 1 });
  const tookMs = (attempts.at(-1) ?? 0) - (attempts[0] ?? 0);
  // 10, 20 and 40 seconds of skipped time.
  expect(tookMs).toBeGreaterThanOrEqual(70_000);
  expect(tookMs).toBeLessThan(15 * 60_000);
});

test('ends a check after its fifth failure, with the reason', async () => {
  let attempts = 0;
  const failure: unknown = await run(async () => {
    attempts += 1;
    throw new Error('The database is down');
  }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(WorkflowFailedError);
  expect(failure).toMatchObject({ cause: { activityType: 'notifyThresholds' } });
  expect(failure).toMatchObject({ cause: { cause: { message: 'The database is down' } } });
  expect(attempts).toBe(5);
});
