/** Contract of the way of one received mail, from receipt to stored message or recorded report. */
export const RECEIVE_MESSAGE = 'receiveMessage';
export const receiveMessageWorkflowId = (receiptId: string): string => `inbound/${receiptId}`;

export interface ReceiveMessageInput {
  receiptId: string;
  /** Of the raw mail; empty in runs older than the field. */
  sizeBytes?: number;
}

/** A mail up to this size is taken in at once; a larger one may take longer than a workflow task can wait. */
export const MAX_LOCAL_INGEST_BYTES = 1024 * 1024;
