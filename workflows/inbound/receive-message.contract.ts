/** Contract of the workflow that turns the receipt of a message into a stored message or an applied report. */
export const RECEIVE_MESSAGE = 'receiveMessage';
export const receiveMessageWorkflowId = (receiptId: string): string => `inbound/${receiptId}`;

export interface ReceiveMessageInput {
  receiptId: string;
  /** Size of the raw message. Missing in runs that started before the field existed. */
  sizeBytes?: number;
  /** Set by a run that continues as new, because processing failed for a long time. */
  needsAttention?: boolean;
}

/** Signal: process the message now instead of at the next scheduled time. */
export const RETRY_RECEIPT_NOW = 'retryNow';
/** Signal: end processing for good, because the message is lost. Argument: the reason, for the row. */
export const DISCARD_RECEIPT = 'discard';
export const DEFAULT_DISCARD_REASON = 'Discarded by an operator.';
export const MAX_DISCARD_REASON_CHARACTERS = 500;

/** Messages up to this size are ingested in a local activity; larger ones may take longer than a workflow task allows. */
export const MAX_LOCAL_INGEST_BYTES = 1024 * 1024;
/** After processing has failed in all its attempts, they begin again after this time. */
export const RECEIPT_RETRY_MS = 3_600_000;

export type ReceiveStage = 'receiving' | 'needs_attention';
