import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { activityInfo } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import {
  DEFAULT_DISCARD_REASON,
  DISCARD_RECEIPT,
  MAX_LOCAL_INGEST_BYTES,
  RECEIVE_MESSAGE,
  RETRY_RECEIPT_NOW,
  type ReceiveMessageInput,
} from '../../workflows/inbound/receive-message.contract.ts';
import { eventually } from '../support/eventually.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const environment = useWorkflowEnvironment();

/** Runs one workflow and records whether each call of `ingest` is local. */
async function receive(input: ReceiveMessageInput, ingest: (call: number) => Promise<string>) {
  const calls: ('local' | 'remote')[] = [];
  const activities = {
    ingestReceipt(): Promise<string> {
      calls.push(activityInfo().isLocal ? 'local' : 'remote');
      return ingest(calls.length);
    },
  };
  const taskQueue = randomUUID();
  return environment.withWorker(taskQueue, activities, async () => {
    const handle = await environment.temporal.client.workflow.start(RECEIVE_MESSAGE, {
      taskQueue,
      workflowId: `inbound/${randomUUID()}`,
      args: [input],
    });
    const result = await handle.result();
    return { calls, result, events: (await handle.fetchHistory()).events?.length ?? 0 };
  });
}

const stored = async () => 'stored as msg_1';
const failing = (times: number) => async (call: number) => {
  if (call <= times) throw new Error('storage is down');
  return 'stored as msg_1';
};

/** Starts a run whose message cannot be processed until `isRepaired`. */
async function withLostMessage(
  work: (run: {
    handle: WorkflowHandle;
    calls: string[];
    repair: () => void;
    details: () => Promise<string>;
    stage: () => Promise<unknown>;
  }) => Promise<void>,
) {
  const calls: string[] = [];
  let isRepaired = false;
  const activities = {
    async ingestReceipt() {
      calls.push('ingest');
      if (isRepaired) return 'stored as msg_1';
      throw ApplicationFailure.nonRetryable('Storage could not get raw/rcp_1 (404)', 'StorageError');
    },
    async discardReceipt({ reason }: { reason: string }) {
      calls.push(`discard: ${reason}`);
      return `discarded: ${reason}`;
    },
  };
  const taskQueue = randomUUID();
  await environment.withWorker(taskQueue, activities, async () => {
    const handle = await environment.temporal.client.workflow.start(RECEIVE_MESSAGE, {
      taskQueue,
      workflowId: `inbound/${randomUUID()}`,
      args: [{ receiptId: 'rcp_1' }],
    });
    const stage = async () => (await handle.describe()).searchAttributes.Stage?.[0];
    await eventually(async () => expect(await stage()).toBe('needs_attention'));
    await work({
      handle,
      calls,
      stage,
      repair: () => {
        isRepaired = true;
      },
      details: async () =>
        (await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata')).currentDetails,
    });
  });
}

describe('receiveMessage, when a message cannot be processed', () => {
  test('waits for a person, shows why, and tries again every hour', () =>
    withLostMessage(async ({ handle, calls, details, stage, repair }) => {
      expect(await details()).toMatch(
        /^The message cannot be processed: StorageError: .*404\) The next attempts begin at \d{4}-[^ ]+Z\./,
      );
      // Between two timers of the run: with both at the same moment the test server sometimes hangs.
      await environment.temporal.sleep('150 minutes');
      await eventually(() => expect(calls.length).toBeGreaterThanOrEqual(3));
      expect(await stage()).toBe('needs_attention');
      repair();
      await handle.signal(RETRY_RECEIPT_NOW);
      expect(await handle.result()).toBe('stored as msg_1');
      expect((await handle.describe()).memo).toEqual({ outcome: 'stored as msg_1' });
    }));

  test.each([
    { argument: [' object deleted by mistake '], reason: 'object deleted by mistake' },
    { argument: [], reason: DEFAULT_DISCARD_REASON },
    { argument: [{ not: 'a text' }], reason: DEFAULT_DISCARD_REASON },
  ])('ends with the reason on the signal discard with $argument', ({ argument, reason }) =>
    withLostMessage(async ({ handle, calls }) => {
      await handle.signal(DISCARD_RECEIPT, ...argument);
      expect(await handle.result()).toBe(`discarded: ${reason}`);
      expect(calls.at(-1)).toBe(`discard: ${reason}`);
    }),
  );

  test('is discarded during the backoff of its attempts, too', async () => {
    const taskQueue = randomUUID();
    let attempts = 0;
    const activities = {
      async ingestReceipt() {
        attempts += 1;
        throw ApplicationFailure.create({ message: 'missing', nextRetryDelay: '10 days' });
      },
      discardReceipt: async () => 'discarded: lost',
    };
    await environment.withWorker(taskQueue, activities, async () => {
      const handle = await environment.temporal.client.workflow.start(RECEIVE_MESSAGE, {
        taskQueue,
        workflowId: `inbound/${randomUUID()}`,
        args: [{ receiptId: 'rcp_1' }],
      });
      await eventually(() => expect(attempts).toBe(1));
      await handle.signal(DISCARD_RECEIPT, 'lost');
      expect(await handle.result()).toBe('discarded: lost');
    });
    expect(attempts).toBe(1);
  });
});

describe('receiveMessage', () => {
  test('ingests a small message in a local activity with at most 6 events', async () => {
    const run = await receive({ receiptId: 'rcp_1', sizeBytes: MAX_LOCAL_INGEST_BYTES }, stored);
    expect(run).toMatchObject({ calls: ['local'], result: 'stored as msg_1' });
    expect(run.events).toBeLessThanOrEqual(6);
  });

  test.each([
    { what: 'a large message', sizeBytes: MAX_LOCAL_INGEST_BYTES + 1 },
    { what: 'a message of unknown size', sizeBytes: undefined },
  ])('ingests $what in a regular activity with at most 11 events', async ({ sizeBytes }) => {
    const run = await receive({ receiptId: 'rcp_1', ...(sizeBytes ? { sizeBytes } : {}) }, stored);
    expect(run).toMatchObject({ calls: ['remote'], result: 'stored as msg_1' });
    expect(run.events).toBeLessThanOrEqual(11);
  });

  test('falls back to a regular activity with retries on failure', async () => {
    const run = await receive({ receiptId: 'rcp_1', sizeBytes: 1_000 }, failing(4));
    expect(run.calls).toEqual(['local', 'remote', 'remote', 'remote', 'remote']);
    expect(run.result).toBe('stored as msg_1');
  });

  test('falls back to a regular activity if the local activity times out', async () => {
    const hangingCall = new AbortController();
    const run = await receive({ receiptId: 'rcp_1', sizeBytes: 1_000 }, async (call) => {
      if (call === 1) await sleep(60_000, undefined, { signal: hangingCall.signal }).catch(() => undefined);
      else hangingCall.abort();
      return 'stored as msg_1';
    });
    expect(run.calls).toEqual(['local', 'remote']);
  });
});
