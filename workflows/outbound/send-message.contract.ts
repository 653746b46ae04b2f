/** Contract of the lifecycle of one outbound message. Names, ids and constants only. */
export const SEND_MESSAGE = 'sendMessage';
export const sendMessageWorkflowId = (messageId: string): string => `send/${messageId}`;

export interface SendMessageInput {
  messageId: string;
}

/** Signal: stop if nothing left yet. The database decides whether that is so. */
export const CANCEL_SEND = 'cancel';
/** Signal: try a deferred message now instead of at its next time. */
export const RETRY_SEND_NOW = 'retryNow';
/** Signal: an outcome was folded into the database; look whether the ambiguity is gone. */
export const OUTCOME_RECORDED = 'outcomeRecorded';
/** Update: a person says what became of a transmission whose outcome nobody knows. */
export const RESOLVE_AMBIGUOUS = 'resolveAmbiguous';

/** `sent`: it left, wait for reports. `resend`: it did not, or a second copy is accepted. */
export type AmbiguityResolution = 'sent' | 'resend';

/** Pauses before the next try while the relay answers 4xx or cannot be reached; the last one repeats. */
export const SEND_RETRY_DELAYS_MS = [
  5_000, 15_000, 60_000, 300_000, 900_000, 1_800_000, 3_600_000, 7_200_000,
] as const;

export type SendStage = 'sending' | 'deferred' | 'needs_attention' | 'finished';
