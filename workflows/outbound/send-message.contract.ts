/** Contract of the workflow that sends one message. */
export const SEND_MESSAGE = 'sendMessage';
export const sendMessageWorkflowId = (messageId: string): string => `send/${messageId}`;

export interface SendMessageInput {
  messageId: string;
  /** Whether `transmitMessage` runs the send gate. Unset in runs of older versions, which call `prepareSend` before it. */
  gatesInTransmission?: boolean;
}

/** Type of the activity that transmits; the history of a run says when it did. */
export const TRANSMIT_MESSAGE = 'transmitMessage';

/**
 * Result of that activity when it transmits nothing. `finished`: the send gate refused the message, or it is settled. `held`: a
 * suspension affects it, the organization is closed, or sending is switched off.
 */
export type NotTransmitted = 'finished' | 'held';

export const isNotTransmitted = (result: unknown): boolean => result === 'finished' || result === 'held';

/** Signal: cancel what has not been transmitted. The message's row determines what can still be canceled. */
export const CANCEL_SEND = 'cancel';
/** Signal: retry a deferred message now instead of at the next scheduled time. */
export const RETRY_SEND_NOW = 'retryNow';
/** Signal: an outcome was recorded; check whether the message is still ambiguous. */
export const OUTCOME_RECORDED = 'outcomeRecorded';
/** Update, and signal (for batches): an operator resolves transmissions whose outcome is unknown. */
export const RESOLVE_AMBIGUOUS = 'resolveAmbiguous';

/** `sent`: the relay has the message; wait for reports. `resend`: it does not, or a duplicate is acceptable. */
export type AmbiguityResolution = 'sent' | 'resend';

/** An operator's decision about recipients whose outcome is unknown, from the relay's log. */
export interface AmbiguityDecision {
  resolution: AmbiguityResolution;
  /** Number of the recipient, from 0; without it, all ambiguous recipients of the message. */
  recipient?: number;
  /**
   * ISO 8601; default: when the run receives the decision. Attempts that began later are not affected, so a decision that
   * arrives twice cannot resolve a new attempt.
   */
  decidedAt?: string;
}

/** Argument of {@link RESOLVE_AMBIGUOUS}; for the whole message, the resolution alone is enough. */
export type ResolveAmbiguousInput = AmbiguityResolution | AmbiguityDecision;

/** Delays between attempts while the relay responds 4xx or cannot be reached; the last delay repeats. */
export const SEND_RETRY_DELAYS_MS = [
  5_000, 15_000, 60_000, 300_000, 900_000, 1_800_000, 3_600_000, 7_200_000,
] as const;

/** Type of the failure of a message that can never be sent (`UnsendableMessageError`). */
export const UNSENDABLE_FAILURE = 'UnsendableMessageError';

/** Type of the failure of a run whose message waits for the end of a suspension. Also used by `sendScheduledDraft`. */
export const HELD_FAILURE = 'HeldBySuspension';

export type SendStage = 'sending' | 'deferred' | 'needs_attention';
