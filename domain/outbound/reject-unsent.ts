import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import type { EventService } from '../events/event.service.ts';
import type { Message } from '../messages/message.entity.ts';
import { type Recipient, RecipientEntity } from '../messages/recipient.entity.ts';
import { deriveStatus, isSettled } from './message-status.ts';
import { createEmptyChanges, type OutcomeChanges, recordOutcomeEvents } from './outcome-events.ts';
import { SendAttemptEntity } from './send-attempt.entity.ts';

interface UnsentRecipients {
  recipients: Recipient[];
  /** Those that are rejected. */
  unsent: Recipient[];
  rejection: NonNullable<OutcomeChanges['rejection']>;
}

/**
 * Rejects the recipients of a message that have not been transmitted to, and announces it with an event. The caller holds the message's
 * lock.
 *
 * @returns `open` if a worker crashed during an attempt or before it recorded the result. The next transmission then
 * sends nothing, but marks the attempt `ambiguous`.
 */
export async function rejectUnsent(
  transaction: Transaction,
  events: EventService,
  message: Message,
  { recipients, unsent, rejection }: UnsentRecipients,
): Promise<'settled' | 'open'> {
  const now = new Date();
  for (const recipient of unsent) {
    recipient.status = 'rejected';
    recipient.diagnosticCode = rejection.detail;
    recipient.updatedAt = now;
  }
  message.status = deriveStatus(
    recipients.map(({ status }) => status),
    false,
  );
  message.statusDetail = rejection.detail;
  const changes = { ...createEmptyChanges(), rejected: unsent, rejection };
  await recordOutcomeEvents(transaction, events, { message, recipients }, changes, now);
  return recipients.every(({ status }) => isSettled(status)) ? 'settled' : 'open';
}

/**
 * Returns all recipients, and the unsettled ones without an open attempt: one in progress, one that is not recorded, or
 * one that the relay may have accepted.
 */
export async function findUnsentRecipients(
  em: EntityManager,
  messageId: string,
): Promise<{ recipients: Recipient[]; unsent: Recipient[] }> {
  const recipients = await em.find(RecipientEntity, { messageId }, { orderBy: { position: 'asc' } });
  const attempts = await em.find(SendAttemptEntity, {
    messageId,
    $or: [{ recorded: false, state: { $ne: 'deferred' } }, { state: { $in: ['attempting', 'ambiguous'] } }],
  });
  const open = new Set(attempts.map(({ position }) => position));
  return {
    recipients,
    unsent: recipients.filter(({ status, position }) => !isSettled(status) && !open.has(position)),
  };
}
