import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { activityInfo } from '@temporalio/activity';
import {
  MAX_LOCAL_INGEST_BYTES,
  RECEIVE_MESSAGE,
  type ReceiveMessageInput,
} from '../../workflows/inbound/receive-message.contract.ts';
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
