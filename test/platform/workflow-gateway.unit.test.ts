import { expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { createWorkflowGateway } from '../../platform/outbox/workflow-gateway.ts';

const START = {
  workflowType: 'deliverWebhook',
  workflowId: 'webhook/whd_1',
  taskQueue: 'webhooks',
  input: { deliveryId: 'whd_1' },
  searchAttributes: { OrgId: 'org_1' },
  summary: 'a summary',
};

/** @returns the options Temporal's client is given. */
async function optionsOf(start: typeof START & { fairnessKey?: string }) {
  const given: unknown[] = [];
  const workflow = {
    start: async (_type: string, options: unknown) => given.push(options),
  } as unknown as Client['workflow'];
  await createWorkflowGateway({ workflow }).dispatch({ start });
  return given[0];
}

test('a run gets its share of the queue by its key', async () => {
  expect(await optionsOf({ ...START, fairnessKey: 'whe_1' })).toMatchObject({
    workflowId: 'webhook/whd_1',
    priority: { fairnessKey: 'whe_1' },
  });
});

test('without one it has none of its own', async () => {
  expect(await optionsOf(START)).not.toHaveProperty('priority');
});
