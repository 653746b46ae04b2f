import { expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { createWorkflowGateway } from '../../platform/outbox/workflow-gateway.ts';

const START = {
  workflowType: 'deliverWebhook',
  workflowId: 'webhook/whd_1',
  taskQueue: 'webhooks',
  input: { deliveryId: 'whd_1' },
  searchAttributes: { OrgId: 'org_1' },
  summary: 'a summary',
  priority: { priorityKey: 3, fairnessKey: 'whe_1' },
};

/** @returns the options passed to Temporal's client. */
async function getStartOptions(start: StartCommand) {
  const received: unknown[] = [];
  const workflow = {
    start: async (_type: string, options: unknown) => received.push(options),
  } as unknown as Client['workflow'];
  await createWorkflowGateway({ workflow }).dispatch({ start });
  return received[0];
}

test('passes priority and fairness key, which the run’s activities inherit', async () => {
  expect(await getStartOptions(START)).toMatchObject({
    workflowId: 'webhook/whd_1',
    priority: { priorityKey: 3, fairnessKey: 'whe_1' },
  });
});

test('says in memo and details why the reconciler started a run, and nothing for others', async () => {
  const recovery = 'Started again by the reconciler.';
  expect(await getStartOptions({ ...START, recovery })).toMatchObject({
    memo: { recovery },
    staticDetails: recovery,
    staticSummary: 'a summary',
  });
  const other = await getStartOptions(START);
  expect(other).not.toHaveProperty('memo');
  expect(other).not.toHaveProperty('staticDetails');
});
