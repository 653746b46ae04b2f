import { proxyActivities } from '@temporalio/workflow';
import type { MessageActivities } from '../../activities/messages.activities.ts';
import type { ReceiveMessageInput } from './receive-message.contract.ts';

const { ingestReceipt } = proxyActivities<MessageActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

/**
 * The way of one received mail: read, threaded, stored and announced as a message, or folded as the report it is. One
 * activity, because every step before the last is repeatable and none is worth waiting at; its retries are the wait.
 *
 * @returns what became of it, for the Temporal UI.
 */
export async function receiveMessage({ receiptId }: ReceiveMessageInput): Promise<string> {
  return ingestReceipt({ receiptId });
}
