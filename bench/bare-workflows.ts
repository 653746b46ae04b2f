import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { type SearchAttributeName, toSearchAttributes } from '../platform/temporal.ts';
import { terminate, waitFor } from '../test/support/isolated-service.ts';
import { runConcurrently } from './measure.ts';

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
  /** Returns the search attributes of the next run. */
  searchAttributes?: () => Partial<Record<SearchAttributeName, string>>;
}

export interface BareWorkflows {
  /** Starts `count` runs and waits for the last of their activities. */
  run(workflow: BareWorkflow, count: number): Promise<void>;
  stop(): Promise<void>;
}

/** The baseline of workflows: bare ones with no-op activities, on the same Temporal server. */
export async function startBareWorkflows(address: string): Promise<BareWorkflows> {
  const worker = await startBareWorker(address);
  const connection = await Connection.connect({ address });
  const client = new Client({ connection });
  return {
    async run({ type, input, activities, searchAttributes }, count) {
      const goal = worker.ran() + activities * count;
      await runConcurrently(count, CONCURRENCY, async () => {
        await client.workflow.start(type, {
          taskQueue: 'bare',
          workflowId: randomUUID(),
          args: [input],
          ...(searchAttributes ? { typedSearchAttributes: toSearchAttributes(searchAttributes()) } : {}),
        });
      });
      await waitFor('the bare workflows', async () => {
        if (worker.ran() < goal) throw new Error('not yet');
      });
    },
    async stop() {
      await connection.close();
      await worker.stop();
    },
  };
}
