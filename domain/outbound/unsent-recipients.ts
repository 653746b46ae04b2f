import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { EventService } from '../events/event.service.ts';
import { type Message, MessageEntity } from '../messages/message.entity.ts';
import { type Recipient, RecipientEntity } from '../messages/recipient.entity.ts';
import { deriveStatus, isSettled, isUnsettled } from './message-status.ts';
import { createEmptyChanges, type OutcomeChanges, recordOutcomeEvents } from './outcome-events.ts';
import { SendAttemptEntity } from './send-attempt.entity.ts';

/** Locks the message's row until the transaction ends. Returns null if the message does not exist. */
export function lockMessage({ em }: Transaction, messageId: string): Promise<Message | null> {
  return em.findOne(MessageEntity, { id: messageId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
}

interface UnsentRecipients {
  recipients: Recipient[];
  /** Those that are rejected. */
  unsent: Recipient[];
  rejection: NonNullable<OutcomeChanges['rejection']>;
}

/**
 * Rejects the recipients of a message that have not been transmitted to, and records the event. The caller holds the
 * message's lock.
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

export interface StoppedSend {
  /** For the sender and operators; without addresses and content. */
  reason: string;
  /** The message can never be sent. Otherwise an operator decides whether to try again. */
  isFinal: boolean;
}

/**
 * Records that the service has stopped trying to send a message: `failed` if it can never be sent, otherwise
 * `needs_attention`. Recipients that were already transmitted to are not affected.
 *
 * @returns `settled` if there is nothing left to decide.
 */
export function stopSend(
  database: Database,
  events: EventService,
  messageId: string,
  stopped: StoppedSend,
): Promise<'settled' | 'needs_attention'> {
  return database.systemTransaction((transaction) => stop(transaction, events, messageId, stopped));
}

async function stop(
  transaction: Transaction,
  events: EventService,
  messageId: string,
  { reason, isFinal }: StoppedSend,
): Promise<'settled' | 'needs_attention'> {
  const message = await lockMessage(transaction, messageId);
  if (!message || !isUnsettled(message.status)) return 'settled';
  const { recipients, unsent } = await findUnsentRecipients(transaction.em, message.id);
  if (recipients.every(({ status }) => isSettled(status))) return 'settled';
  if (isFinal && unsent.length > 0) {
    const rejection = { reason: 'blocked_recipient', detail: reason } as const;
    await rejectUnsent(transaction, events, message, { recipients, unsent, rejection });
    if (message.status === 'rejected') message.status = 'failed';
    if (recipients.every(({ status }) => isSettled(status))) return 'settled';
  }
  message.status = 'needs_attention';
  message.statusDetail = reason;
  return 'needs_attention';
}
