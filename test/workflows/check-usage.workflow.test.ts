import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { UsageActivities } from '../../activities/usage-alerts.activities.ts';
import { CHECK_USAGE } from '../../workflows/usage-alerts/check-usage.contract.ts';
import { startWorkflowEnvironment, type WorkflowTestEnvironment } from '../support/workflow-environment.ts';

let environment: WorkflowTestEnvironment;
beforeAll(async () => {
  environment = await startWorkflowEnvironment();
}, 120_000);
afterAll(() => environment?.stop());

const run = (tellOfThresholds: UsageActivities['tellOfThresholds']) => {
  const taskQueue = randomUUID();
  return environment.withWorker(taskQueue, { tellOfThresholds }, async () => {
    const handle = await environment.temporal.client.workflow.start(CHECK_USAGE, {
      taskQueue,
      workflowId: `check-usage/${randomUUID()}`,
      args: [],
    });
    return handle.result();
  });
};

test('a look that failed is repeated within the minutes until the next one', async () => {
  const looks: number[] = [];
  const result = await run(async () => {
    looks.push(await environment.temporal.currentTimeMs());
    if (looks.length < 4) throw new Error('The database is down');
    return { organizations: 3, told: 1 };
  });
  expect(result).toEqual({ organizations: 3, told: 1 });
  const tookMs = (looks.at(-1) ?? 0) - (looks[0] ?? 0);
  // 10, 20 and 40 seconds of skipped time.
  expect(tookMs).toBeGreaterThanOrEqual(70_000);
  expect(tookMs).toBeLessThan(15 * 60_000);
});

test('one that keeps failing ends, and leaves the rest to the next', async () => {
  await expect(run(() => Promise.reject(new Error('The database is down')))).rejects.toThrow();
});
