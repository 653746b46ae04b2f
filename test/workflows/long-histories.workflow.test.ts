import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Client, type WorkflowHandle } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { findFreePort } from '../../dev/stack/ports.ts';
import { startTemporal, type TemporalServer } from '../../dev/stack/temporal.ts';
import { findTemporalCli } from '../../dev/stack/temporal-binaries.ts';
import { loadWorkflowBundle } from '../../workers/workflow-bundle.ts';
import {
  ENFORCE_PAYMENT_GRACE,
  EXTEND_GRACE,
  type PaymentGraceStep,
} from '../../workflows/billing/enforce-payment-grace.contract.ts';
import { eventually } from '../support/eventually.ts';
import { connectToTemporal } from '../support/temporal-connection.ts';
import { quietTemporal } from '../support/workflow-environment.ts';

// The time-skipping server never suggests a new run, so this needs the real one, with a lower limit.
jest.setTimeout(120_000);
quietTemporal();
const SUGGESTED_AFTER_EVENTS = 30;
const LONG_AGO = '2020-01-01T00:00:00.000Z';

let directory: string;
let temporal: TemporalServer;
let client: Client;
let connection: NativeConnection;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'agent-email-long-'));
  temporal = await startTemporal({
    executable: await findTemporalCli({
      cacheDir: join(resolve(import.meta.dirname, '../..'), '.cache', 'temporal'),
      environment: process.env,
      log: () => undefined,
    }),
    port: await findFreePort(),
    logFile: join(directory, 'temporal.log'),
    dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': SUGGESTED_AFTER_EVENTS },
  });
  client = new Client({ connection: await connectToTemporal(temporal.address) });
  connection = await NativeConnection.connect({ address: temporal.address });
});
afterAll(async () => {
  await connection?.close();
  await client?.connection.close();
  await temporal?.stop();
  if (directory) rmSync(directory, { recursive: true, force: true });
});

async function withWorker<T>(activities: object, work: (taskQueue: string) => Promise<T>): Promise<T> {
  const taskQueue = randomUUID();
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowBundle: await loadWorkflowBundle(),
    activities,
  });
  return worker.runUntil(work(taskQueue));
}

/** The number of events of each run that ended by continuing, the oldest first. */
async function continuedRuns({
  workflowId,
  firstExecutionRunId,
}: WorkflowHandle & { firstExecutionRunId: string }) {
  const lengths: number[] = [];
  let runId = firstExecutionRunId;
  for (;;) {
    const { events = [] } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    const next = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
    if (!next) return lengths;
    lengths.push(events?.length ?? 0);
    runId = next;
  }
}

describe('a grace that stays suspended', () => {
  test('continues in new runs, each with a bounded history, keeps its stage and takes signals', async () => {
    let outcome: 'open' | 'recovered' = 'open';
    const extensions: number[] = [];
    const activities = {
      async reviewGrace({ graceId }: { graceId: string }): Promise<PaymentGraceStep | string> {
        expect(graceId).toBe('grc_1');
        // Reviewed again after the shortest wait.
        return outcome === 'open'
          ? { stage: 'suspended', waitUntil: LONG_AGO, detail: 'Suspended.' }
          : outcome;
      },
      async extendGrace({ days }: { days: number }): Promise<void> {
        extensions.push(days);
      },
    };
    await withWorker(activities, async (taskQueue) => {
      const handle = await client.workflow.start(ENFORCE_PAYMENT_GRACE, {
        taskQueue,
        workflowId: `payment-grace/${randomUUID()}`,
        args: [{ graceId: 'grc_1' }],
      });
      await eventually(
        async () => expect((await continuedRuns(handle)).length).toBeGreaterThanOrEqual(2),
        60_000,
      );
      const current = client.workflow.getHandle(handle.workflowId);
      // Many signals make a history long, too. None is lost between two runs.
      for (let days = 1; days <= 20; days += 1) await current.signal(EXTEND_GRACE, { days });
      await eventually(() => expect(extensions).toHaveLength(20), 30_000);
      expect((await current.describe()).searchAttributes.Stage).toEqual(['suspended']);
      outcome = 'recovered';
      expect(await handle.result()).toBe('recovered');
      expect((await current.describe()).memo).toEqual({ outcome: 'recovered' });

      const lengths = await continuedRuns(handle);
      expect(Math.min(...lengths)).toBeGreaterThanOrEqual(SUGGESTED_AFTER_EVENTS);
      expect(Math.max(...lengths)).toBeLessThan(200);
    });
    expect(extensions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, at) => at + 1));
  });
});
