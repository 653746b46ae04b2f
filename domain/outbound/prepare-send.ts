import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { EventService } from '../events/event.service.ts';
import type { Message } from '../messages/message.entity.ts';
import { type Recipient, RecipientEntity } from '../messages/recipient.entity.ts';
import { readGateInputOfMessage } from './gate-input.ts';
import { lockMessage } from './lock-message.ts';
import { deriveStatus, isSettled } from './message-status.ts';
import { createEmptyChanges, type OutcomeChanges, recordOutcomeEvents } from './outcome-events.ts';
import { SendAttemptEntity } from './send-attempt.entity.ts';
import { findRefusal, findSuppressedRecipients, type GateInput, type Refusal } from './send-gate.ts';

/**
 * Runs the send gate and marks the message `sending`. A refusal is recorded with its event in the same transaction.
 *
 * @returns `finished` if there is nothing more to send.
 */
export async function prepareSend(
  database: Database,
  events: EventService,
  messageId: string,
): Promise<'proceed' | 'finished'> {
  if (await prepareWithoutLock(database, messageId)) return 'proceed';
  return database.systemTransaction((transaction) => prepareWithLock(transaction, events, messageId));
}

/**
 * Handles the usual case in two statements and without a lock: the gate finds no refusal, and the message is still
 * unsent.
 */
async function prepareWithoutLock(database: Database, messageId: string): Promise<boolean> {
  return database.autocommit(async (em) => {
    const gateInput = await readGateInputOfMessage(em, messageId);
    if (!gateInput || findRefusal(gateInput) || findSuppressedRecipients(gateInput).length > 0) return false;
    const updated = await em.execute(
      sql`update messages set status = 'sending', updated_at = now()
       where id = ${messageId} and status in ('queued', 'deferred', 'sending') returning id`,
    );
    return updated.length === 1;
  });
}

async function prepareWithLock(
  transaction: Transaction,
  events: EventService,
  messageId: string,
): Promise<'proceed' | 'finished'> {
  const { em } = transaction;
  const message = await lockMessage(transaction, messageId);
  if (!message) return 'finished';
  if (message.status === 'needs_attention') return 'proceed';
  if (message.status !== 'queued' && message.status !== 'sending' && message.status !== 'deferred')
    return 'finished';
  const gateInput = await readGateInputOfMessage(em, message.id);
  const refusal = gateInput && findRefusal(gateInput);
  if (refusal && (await reject(transaction, events, message, refusal)) === 'settled') return 'finished';
  if (
    gateInput &&
    !refusal &&
    (await bounceSuppressed(transaction, events, message, gateInput)) === 'settled'
  )
    return 'finished';
  message.status = 'sending';
  return 'proceed';
}

/**
 * Rejects the unsent recipients of a message that the gate refuses at dispatch.
 *
 * @returns `open` if a worker crashed during an attempt or before it recorded the result. The next transmission then
 * sends nothing, but marks the attempt `ambiguous`.
 */
async function reject(
  transaction: Transaction,
  events: EventService,
  message: Message,
  refusal: Refusal,
): Promise<'settled' | 'open'> {
  const now = new Date();
  const { recipients, unsent: rejected } = await findUnsentRecipients(transaction.em, message.id);
  for (const recipient of rejected) {
    recipient.status = 'rejected';
    recipient.diagnosticCode = refusal.detail;
    recipient.updatedAt = now;
  }
  message.status = deriveStatus(
    recipients.map(({ status }) => status),
    false,
  );
  message.statusDetail = refusal.detail;
  await recordOutcomeEvents(
    transaction,
    events,
    message,
    { ...createEmptyChanges(), rejected, rejection: { reason: refusal.reason, detail: refusal.detail } },
    now,
  );
  return recipients.every(({ status }) => isSettled(status)) ? 'settled' : 'open';
}

/** Used for manual suppressions and complaints, which have no status code from a server. SES reports the same code. */
const DEFAULT_SUPPRESSED_STATUS = '5.1.1';

/**
 * Skips the suppressed recipients and records them as bounced.
 *
 * @returns `settled` if no recipient remains to be sent to.
 */
async function bounceSuppressed(
  transaction: Transaction,
  events: EventService,
  message: Message,
  gateInput: GateInput,
): Promise<'settled' | 'open'> {
  const suppressed = new Map(
    findSuppressedRecipients(gateInput).map(({ email, suppression }) => [email, suppression]),
  );
  if (suppressed.size === 0) return 'open';
  const now = new Date();
  const { recipients, unsent } = await findUnsentRecipients(transaction.em, message.id);
  const bounced: OutcomeChanges['bounced'] = [];
  for (const recipient of unsent) {
    const suppression = suppressed.get(recipient.email.toLowerCase());
    if (!suppression) continue;
    recipient.status = 'suppressed';
    recipient.statusCode = suppression.status ?? DEFAULT_SUPPRESSED_STATUS;
    recipient.diagnosticCode = `Not sent: the address is suppressed (${suppression.origin}).`;
    recipient.updatedAt = now;
    bounced.push({ recipient, bounceKind: { type: 'Permanent', subType: 'Suppressed' } });
  }
  if (bounced.length > 0) message.bouncedAt ??= now;
  const settled = recipients.every(({ status }) => isSettled(status));
  if (settled) {
    message.status = deriveStatus(
      recipients.map(({ status }) => status),
      false,
    );
  }
  await recordOutcomeEvents(transaction, events, message, { ...createEmptyChanges(), bounced }, now);
  return settled ? 'settled' : 'open';
}

/** Returns all recipients, and the unsettled ones without an open attempt. */
async function findUnsentRecipients(
  em: EntityManager,
  messageId: string,
): Promise<{ recipients: Recipient[]; unsent: Recipient[] }> {
  const recipients = await em.find(RecipientEntity, { messageId }, { orderBy: { position: 'asc' } });
  const attempts = await em.find(SendAttemptEntity, {
    messageId,
    recorded: false,
    state: { $ne: 'deferred' },
  });
  const open = new Set(attempts.map(({ position }) => position));
  return {
    recipients,
    unsent: recipients.filter(({ status, position }) => !isSettled(status) && !open.has(position)),
  };
}
