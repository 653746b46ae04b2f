import { isCancellation, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { InboundActivities } from '../../activities/inbound.activities.ts';
import { MAX_LOCAL_INGEST_BYTES, type ReceiveMessageInput } from './receive-message.contract.ts';

const { ingestReceipt } = proxyActivities<InboundActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});
const { ingestReceipt: ingestLocally } = proxyLocalActivities<InboundActivities>({
  // Half of what a workflow task may take.
  startToCloseTimeout: '5 seconds',
  retry: { maximumAttempts: 1 },
});

/**
 * The way of one received mail: read, threaded, stored and announced as a message, or folded as the report it is. One
 * activity, because every step before the last is repeatable and none is worth waiting at. Ordinary mail is taken in
 * within the first workflow task (6 events instead of 11); where that fails, the activity's retries are the wait, and
 * Pending Activities shows them.
 *
 * @returns what became of it, for the Temporal UI.
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
