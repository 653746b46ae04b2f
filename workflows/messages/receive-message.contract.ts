/** Contract of the way of one received mail, from receipt to stored message or recorded report. */
export const RECEIVE_MESSAGE = 'receiveMessage';
export const receiveMessageWorkflowId = (receiptId: string): string => `inbound/${receiptId}`;

export interface ReceiveMessageInput {
  receiptId: string;
}
