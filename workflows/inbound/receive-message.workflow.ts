import { isCancellation, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { InboundActivities } from '../../activities/inbound.activities.ts';
import { MAX_LOCAL_INGEST_BYTES, type ReceiveMessageInput } from './receive-message.contract.ts';

const { ingestReceipt } = proxyActivities<InboundActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});
const { ingestReceipt: ingestLocally } = proxyLocalActivities<InboundActivities>({
  // Half of the workflow task timeout.
  startToCloseTimeout: '5 seconds',
  retry: { maximumAttempts: 1 },
});

/**
 * Ingests a received message: parses it, assigns a thread, stores and announces it, or applies it if it is a report. One
 * activity suffices, because all steps before the last are repeatable. Small messages are ingested in a local activity
 * within the first workflow task (6 events instead of 11). If that fails, a regular activity retries, which operators can
 * see.
 *
 * @returns a description of the result, for the Temporal UI.
 */
export async function receiveMessage({ receiptId, sizeBytes }: ReceiveMessageInput): Promise<string> {
  if (sizeBytes === undefined || sizeBytes > MAX_LOCAL_INGEST_BYTES) return ingestReceipt({ receiptId });
  try {
    return await ingestLocally({ receiptId });
  } catch (error) {
    if (isCancellation(error)) throw error;
    return ingestReceipt({ receiptId });
  }
}
