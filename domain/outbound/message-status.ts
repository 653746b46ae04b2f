import type { MessageStatus, RecipientStatus } from '../messages/message.entity.ts';

/** Whether the send itself has finished for the recipient. */
export function isSettled(status: RecipientStatus): boolean {
  return status !== 'pending' && status !== 'deferred';
}

/** Whether the send of a message has not finished. */
export function isUnsettled(status: MessageStatus): boolean {
  return status === 'queued' || status === 'sending' || status === 'deferred' || status === 'needs_attention';
}

/** Whether a delivery report may still change the recipient's outcome. */
export function isAwaitingReport(status: RecipientStatus): boolean {
  return status === 'sent';
}

/**
 * Derives a message's status from its recipients: unsent recipients take precedence, then complained, bounced,
 * delivered and sent. `rejected` only if every recipient is rejected.
 */
export function deriveStatus(recipients: readonly RecipientStatus[], ambiguous: boolean): MessageStatus {
  const has = (status: RecipientStatus) => recipients.includes(status);
  if (ambiguous) return 'needs_attention';
  if (has('deferred') || has('pending')) return 'deferred';
  if (has('complained')) return 'complained';
  if (has('bounced') || has('suppressed')) return 'bounced';
  if (has('delivered')) return 'delivered';
  if (has('sent')) return 'sent';
  return 'rejected';
}

/**
 * A recipient's status after a report. A complaint takes precedence over everything, a bounce counts even after a
 * delivery (late bounce), and a delivery never replaces a bounce.
 */
export function statusAfterReport(
  current: RecipientStatus,
  reported: 'delivered' | 'bounced' | 'complained',
): RecipientStatus {
  if (current === 'complained') return current;
  if (reported === 'delivered' && (current === 'bounced' || current === 'delivered')) return current;
  return reported;
}

/** What the send workflow has to do next. */
export interface SendState {
  /** Status of the message; `deleted` if it no longer exists. */
  status: MessageStatus | 'deleted';
  /** At least one recipient remains to be transmitted to. */
  hasUnsent: boolean;
  /** Numbers of the recipients for whom it is unknown whether the relay accepted the message. */
  ambiguous: number[];
  /** What to search the relay's log for: the part of the Message-ID before `@`. Only with `ambiguous` recipients. */
  messageIdLeft?: string;
}

/** Nothing remains to be done. */
export const settledAs = (status: SendState['status']): SendState => ({
  status,
  hasUnsent: false,
  ambiguous: [],
});
