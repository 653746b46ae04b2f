import type { EntityManager } from '@mikro-orm/postgresql';
import type { Message } from '../messages/message.entity.ts';
import { RecipientEntity } from '../messages/recipient.entity.ts';
import { deriveStatus } from './message-status.ts';
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
 * Rejects the remaining recipients of a partially transmitted message. Its status is then derived from the transmitted
 * recipients.
 *
 * @returns false if the message is final or the outcome of a recipient is unknown; nothing changes in that case.
 */
export async function cancelRemainingRecipients(
  em: EntityManager,
  message: Message,
  detail: string,
): Promise<boolean> {
  if (!['deferred', 'sending', 'needs_attention'].includes(message.status)) return false;
  const open = await em.count(SendAttemptEntity, {
    messageId: message.id,
    $or: [{ state: { $in: ['attempting', 'ambiguous'] } }, { recorded: false }],
  });
  if (open > 0) return false;
  await rejectUnsettledRecipients(em, message.id, detail);
  const recipients = await em.find(RecipientEntity, { messageId: message.id });
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
