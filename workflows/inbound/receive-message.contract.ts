/** Contract of the workflow that turns the receipt of a message into a stored message or an applied report. */
export const RECEIVE_MESSAGE = 'receiveMessage';
export const receiveMessageWorkflowId = (receiptId: string): string => `inbound/${receiptId}`;

export interface ReceiveMessageInput {
  receiptId: string;
  /** Size of the raw message. Missing in runs that started before the field existed. */
  sizeBytes?: number;
}

/** Messages up to this size are ingested in a local activity; larger ones may take longer than a workflow task allows. */
export const MAX_LOCAL_INGEST_BYTES = 1024 * 1024;
