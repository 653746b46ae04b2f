import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { Client } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker } from '@temporalio/worker';
import { findFreePort } from '../../dev/stack/ports.ts';
import { startTemporal, type TemporalServer } from '../../dev/stack/temporal.ts';
import { findTemporalCli } from '../../dev/stack/temporal-binaries.ts';
import { loadWorkflowBundle } from '../../workers/workflow-bundle.ts';
import { SEND_SCHEDULED_DRAFT } from '../../workflows/drafts/send-scheduled-draft.contract.ts';
import { OUTBOUND_QUEUE } from '../../workflows/task-queues.contract.ts';
import { eventually } from '../support/eventually.ts';
import { connectToTemporal } from '../support/temporal-connection.ts';
import { quietTemporal } from '../support/workflow-environment.ts';

// The time-skipping server has neither resets nor queries over runs, so this needs the real one.
jest.setTimeout(120_000);
quietTemporal();
const TIMEOUT_MS = 30_000;
const ROOT = resolve(import.meta.dirname, '../..');

let directory: string;
let executable: string;
let temporal: TemporalServer;
let client: Client;
let connection: NativeConnection;
let stopWorker: (() => Promise<void>) | undefined;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'agent-email-reset-'));
  executable = await findTemporalCli({
    cacheDir: join(ROOT, '.cache', 'temporal'),
    environment: process.env,
    log: () => undefined,
  });
  temporal = await startTemporal({
    executable,
    port: await findFreePort(),
    logFile: join(directory, 'temporal.log'),
  });
  client = new Client({ connection: await connectToTemporal(temporal.address) });
  connection = await NativeConnection.connect({ address: temporal.address });
});
afterAll(async () => {
  await stopWorker?.();
  await connection?.close();
  await client?.connection.close();
  await temporal?.stop();
  if (directory) rmSync(directory, { recursive: true, force: true });
});

test('the bulk reset of docs/upgrades.md settles runs that a bad deploy left with a nondeterminism error', async () => {
  const ids = ['scheduled/drf_1/1', 'scheduled/drf_2/1', 'scheduled/drf_3/1'];
  const unscheduled: string[] = [];
  const serve = async (workflowBundle: { code: string }) => {
    const worker = await Worker.create({
      connection,
      taskQueue: OUTBOUND_QUEUE,
      workflowBundle,
      activities: {
        checkDraft: async () => undefined,
        unscheduleDraft: async ({ draftId }: { draftId: string }) => {
          unscheduled.push(draftId);
        },
      },
    });
    const done = worker.run();
    return async () => {
      worker.shutdown();
      await done;
    };
  };
  // The bad version, which has an activity that this version does not have.
  stopWorker = await serve(
    await bundleWorkflowCode({
      workflowsPath: join(import.meta.dirname, 'bad-deploy.ts'),
      logger: new DefaultLogger('ERROR'),
    }),
  );
  for (const workflowId of ids) {
    const [, draftId] = workflowId.split('/');
    await client.workflow.start(SEND_SCHEDULED_DRAFT, {
      workflowId,
      taskQueue: OUTBOUND_QUEUE,
      args: [
        { draftId, scheduleVersion: 1, sendAt: new Date(Date.now() + 3_600_000).toISOString(), version: 1 },
      ],
    });
    await eventually(async () => {
      const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
      expect(events?.some((event) => event.timerStartedEventAttributes)).toBe(true);
    }, TIMEOUT_MS);
  }
  await stopWorker();

  // This version cannot continue the runs, and says so.
  stopWorker = await serve(await loadWorkflowBundle());
  for (const workflowId of ids) await client.workflow.getHandle(workflowId).signal('unschedule');
  const stuck = 'WorkflowType = "sendScheduledDraft" AND ExecutionStatus = "Running"';
  await eventually(async () => {
    for (const workflowId of ids) {
      const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
      const failure = events?.findLast((event) => event.workflowTaskFailedEventAttributes);
      expect(failure?.workflowTaskFailedEventAttributes?.failure?.message).toContain('TMPRL1100');
    }
  }, TIMEOUT_MS);
  expect(unscheduled).toEqual([]);

  await promisify(execFile)(executable, [
    'workflow',
    'reset',
    '--address',
    temporal.address,
    '--query',
    stuck,
    '--type',
    'FirstWorkflowTask',
    '--reason',
    'nondeterminism after the deployment of 22 November',
    '--yes',
  ]);
  // The signal that arrived meanwhile is not lost.
  for (const workflowId of ids)
    await eventually(
      async () => expect(await client.workflow.getHandle(workflowId).result()).toBe('unscheduled'),
      TIMEOUT_MS,
    );
  expect(unscheduled.toSorted()).toEqual(['drf_1', 'drf_2', 'drf_3']);
});
