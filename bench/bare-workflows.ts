import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { terminate, waitFor } from '../test/support/isolated-service.ts';
import { cpuBetween, cpuSeconds } from './cpu.ts';
import { runConcurrently } from './measure.ts';

const WARM_UP = 100;
const CONCURRENCY = 20;

export interface BareWorker {
  /** Number of activities that have reported so far. */
  ran(): number;
  stop(): Promise<void>;
}

/** The baseline's worker, in its own process like the service's. */
export async function startBareWorker(address: string): Promise<BareWorker> {
  const worker = fork(resolve(import.meta.dirname, 'bare-worker.ts'), [address]);
  let ran = 0;
  await new Promise<void>((done) => {
    worker.on('message', (message) => {
      if (message === 'ready') done();
      else ran += 1;
    });
  });
  return { ran: () => ran, stop: () => terminate(worker) };
}

export interface BareWorkflow {
  /** A workflow type of `workflows/bare.workflow.ts`. */
  type: string;
  input: object;
  /** Number of activities per run that report. */
  activities: number;
}

/**
 * The baseline of workflows: bare ones with no-op activities, on the same Temporal server.
 *
 * @returns seconds from the first start to the last activity, and the CPU seconds they took.
 */
export async function runBareWorkflows(
  address: string,
  { type, input, activities }: BareWorkflow,
  count: number,
): Promise<{ seconds: number; used: Record<string, number> }> {
  const worker = await startBareWorker(address);
  const connection = await Connection.connect({ address });
  const client = new Client({ connection });
  const run = async (number: number) => {
    const goal = worker.ran() + activities * number;
    await runConcurrently(number, CONCURRENCY, async () => {
      await client.workflow.start(type, { taskQueue: 'bare', workflowId: randomUUID(), args: [input] });
    });
    await waitFor('the bare workflows', async () => {
      if (worker.ran() < goal) throw new Error('not yet');
    });
  };
  await run(WARM_UP);
  const before = cpuSeconds();
  const startedAt = performance.now();
  await run(count);
  const seconds = (performance.now() - startedAt) / 1000;
  const used = cpuBetween(before, cpuSeconds());
  await connection.close();
  await worker.stop();
  return { seconds, used };
}
