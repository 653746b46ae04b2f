import type { EntityManager } from '@mikro-orm/postgresql';
import type { Message } from '../messages/message.entity.ts';
import { RecipientEntity } from '../messages/recipient.entity.ts';
import { deriveStatus, isSettled } from './message-status.ts';
import { findUnsentRecipients } from './reject-unsent.ts';
import { SendAttemptEntity } from './send-attempt.entity.ts';

/**
 * Cancels a message that has not been transmitted to any recipient. The caller holds the message's row lock. Dispatch
 * takes the same lock before each attempt, so a message is either in transmission or canceled, never both.
 *
 * @returns false if it is too late; nothing changes in that case.
 */
export async function cancelUnsentMessage(
  em: EntityManager,
  message: Message,
  detail: string,
): Promise<boolean> {
  if (!['queued', 'deferred', 'sending', 'needs_attention'].includes(message.status)) return false;
  const started = await em.count(SendAttemptEntity, {
    messageId: message.id,
    state: { $in: ['attempting', 'accepted', 'ambiguous'] },
  });
  if (started > 0) return false;
  message.status = 'canceled';
  message.statusDetail = detail;
  await rejectUnsettledRecipients(em, message.id, detail);
  return true;
}

/**
 * Rejects the recipients of a partially transmitted message that have not been transmitted to. If the outcome of every
 * other recipient is known, the status of the message is derived from them. Otherwise it does not change: a transmission
 * in progress is finished and recorded, and an ambiguous one still needs a decision. The caller holds the message's lock.
 *
 * @returns false if there is no such recipient; nothing changes in that case.
 */
export async function cancelRemainingRecipients(
  em: EntityManager,
  message: Message,
  detail: string,
): Promise<boolean> {
  if (!['deferred', 'sending', 'needs_attention'].includes(message.status)) return false;
  const { recipients, unsent } = await findUnsentRecipients(em, message.id);
  if (unsent.length === 0) return false;
  for (const recipient of unsent) {
    recipient.status = 'rejected';
    recipient.diagnosticCode = detail;
    recipient.updatedAt = new Date();
  }
  if (recipients.some(({ status }) => !isSettled(status))) return true;
  message.status = deriveStatus(
    recipients.map(({ status }) => status),
    false,
  );
  message.statusDetail = detail;
  return true;
}

async function rejectUnsettledRecipients(
  em: EntityManager,
  messageId: string,
  detail: string,
): Promise<void> {
  await em.nativeUpdate(
    RecipientEntity,
    { messageId, status: { $in: ['pending', 'deferred'] } },
    { status: 'rejected', diagnosticCode: detail, updatedAt: new Date() },
  );
}
