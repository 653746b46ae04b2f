import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { startWorkflowEnvironment } from '../support/workflow-environment.ts';

test('a call that outlives its environment fails, and does not throw into the tests that follow', async () => {
  const environment = await startWorkflowEnvironment();
  const handle = await environment.temporal.client.workflow.start('checkUsage', {
    taskQueue: 'served-by-none',
    workflowId: 'outlives-its-environment',
  });
  const outcome = handle.result().then(
    () => 'answered',
    () => 'failed',
  );
  await pause(100);
  await environment.stop();
  // Longer than the delay of the client's first retries.
  await pause(1_000);
  expect(await outcome).toBe('failed');
}, 60_000);
