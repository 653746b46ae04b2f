import { expect, test } from '@jest/globals';
import { type Client, ScheduleNotFoundError } from '@temporalio/client';
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
  await createWorkflowGateway({ workflow, schedule: NO_SCHEDULES }).dispatch({ start });
  return received[0];
}

const NO_SCHEDULES = {} as Client['schedule'];

test('unpauses a schedule with the reason, and is content if it is gone', async () => {
  const unpaused: string[] = [];
  const schedule = {
    getHandle: (id: string) => ({
      async unpause(note: string) {
        if (id === 'gone') throw new ScheduleNotFoundError('no such schedule', id);
        if (id === 'unreachable') throw new Error('no answer');
        unpaused.push(`${id}: ${note}`);
      },
    }),
  } as unknown as Client['schedule'];
  const { dispatch } = createWorkflowGateway({ workflow: {} as Client['workflow'], schedule });
  await dispatch({ unpause: { scheduleId: 'reconcile', note: 'Ticket 7' } });
  await dispatch({ unpause: { scheduleId: 'gone', note: 'Ticket 7' } });
  const unreachable = dispatch({ unpause: { scheduleId: 'unreachable', note: 'Ticket 7' } });
  await expect(unreachable).rejects.toThrow('no answer');
  expect(unpaused).toEqual(['reconcile: Ticket 7']);
});

test('divides the weight of a holder among its fairness keys', async () => {
  const received: { priority?: object }[] = [];
  const workflow = {
    start: async (_type: string, options: object) => received.push(options),
  } as unknown as Client['workflow'];
  const { dispatch } = createWorkflowGateway({ workflow, schedule: NO_SCHEDULES });
  for (const fairnessKey of ['whe_1', 'whe_2'])
    await dispatch({
      start: { ...START, priority: { priorityKey: 3, fairnessKey, fairnessHolder: 'org_1' } },
    });
  expect(received.map(({ priority }) => priority)).toEqual([
    { priorityKey: 3, fairnessKey: 'whe_1', fairnessWeight: 1 },
    { priorityKey: 3, fairnessKey: 'whe_2', fairnessWeight: 1 / 2 },
  ]);
});

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
