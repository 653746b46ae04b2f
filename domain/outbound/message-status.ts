import type { MessageStatus } from '../messages/message.entity.ts';
import type { RecipientStatus } from '../messages/recipient.entity.ts';

/** Recipients nothing more is expected of by the send itself. */
export function isSettled(status: RecipientStatus): boolean {
  return status !== 'pending' && status !== 'deferred';
}

/** Recipients whose outcome a report may still bring. */
export function awaitsReport(status: RecipientStatus): boolean {
  return status === 'sent';
}

/**
 * A message's status from its recipients': what is still to be sent shows first, then complained over bounced over
 * delivered over sent. `rejected` only where every recipient was.
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
 * What a report makes of a recipient. A complaint outranks all; a bounce counts even after a delivery (late bounce);
 * a delivery never undoes a bounce.
 */
export function statusAfterReport(
  current: RecipientStatus,
  reported: 'delivered' | 'bounced' | 'complained',
): RecipientStatus {
  if (current === 'complained') return current;
  if (reported === 'delivered' && (current === 'bounced' || current === 'delivered')) return current;
  return reported;
}
