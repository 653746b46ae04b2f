import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Sql } from '../../platform/database/sql.ts';
import type { EventService } from '../events/event.service.ts';
import type { Message } from '../messages/message.entity.ts';
import { readGateInputOfMessage } from './check-send.ts';
import { HELD_DETAIL, SWITCHED_OFF_DETAIL } from './held-sends.ts';
import { deriveStatus, isSettled, isUnsettled } from './message-status.ts';
import { createEmptyChanges, type OutcomeChanges, recordOutcomeEvents } from './outcome-events.ts';
import { SendAttemptEntity } from './send-attempt.entity.ts';
import { findRefusal, findSuppressedRecipients, type GateInput, isHeld, type Refusal } from './send-gate.ts';
import { findUnsentRecipients, lockMessage, rejectUnsent } from './unsent-recipients.ts';

export type PreparedSend = 'proceed' | 'finished' | 'held';

/**
 * Runs the send gate and marks the message `sending`. A refusal is recorded with its event in the same transaction.
 *
 * @returns `proceed` if there is something to transmit or an unknown outcome to wait for, `finished` if there is nothing more
 * to send, `held` while the organization, environment or inbox is suspended for another reason than abuse, the organization is
 * closed, or sending is switched off.
 */
export async function prepareSend(
  database: Database,
  events: EventService,
  messageId: string,
): Promise<PreparedSend> {
  if (await prepareWithoutLock(database, messageId)) return 'proceed';
  return database.systemTransaction((transaction) => prepareWithLock(transaction, events, messageId));
}

/**
 * Handles the usual case in two statements and without a lock: the gate finds no refusal, and the message is still
 * unsent.
 */
async function prepareWithoutLock(database: Database, messageId: string): Promise<boolean> {
  const gateInput = await readGateInputOfMessage(withoutTransaction(database), messageId);
  if (!gateInput || gateInput.isSwitchedOff || findRefusal(gateInput)) return false;
  if (findSuppressedRecipients(gateInput).length > 0) return false;
  const updated = await database.db
    .updateTable('messages')
    .set({ status: 'sending', status_detail: null, updated_at: sql`now()` })
    .where('id', '=', messageId)
    .where('status', 'in', ['queued', 'deferred', 'sending'])
    .returning('id')
    .modifyEnd(PREPARED)
    .executeTakeFirst();
  return updated !== undefined;
}

const withoutTransaction = ({ query }: Database): Pick<RowReader, 'execute'> => ({
  execute: <Rows extends object[]>(statement: Sql) => query(statement) as Promise<unknown> as Promise<Rows>,
});

async function prepareWithLock(
  transaction: Transaction,
  events: EventService,
  messageId: string,
): Promise<PreparedSend> {
  const { em } = transaction;
  const message = await lockMessage(transaction, messageId);
  if (!message) return 'finished';
  if (!isUnsettled(message.status)) return 'finished';
  const gateInput = await readGateInputOfMessage(transaction, message.id);
  if (message.status === 'needs_attention' && (await hasUnknownOutcome(em, message.id))) {
    // Only a decision or a report can settle those recipients. It must not wait for what holds the others.
    const { unsent } = await findUnsentRecipients(em, message.id);
    if (unsent.length === 0 || (gateInput && (isHeld(gateInput) || gateInput.isSwitchedOff)))
      return 'proceed';
  }
  if (gateInput && isHeld(gateInput)) return hold(em, message, HELD_DETAIL);
  const refusal = gateInput && findRefusal(gateInput);
  if (refusal && (await reject(transaction, events, message, refusal)) === 'settled') return 'finished';
  if (
    gateInput &&
    !refusal &&
    (await bounceSuppressed(transaction, events, message, gateInput)) === 'settled'
  )
    return 'finished';
  // After the refusals: what will never be sent does not wait.
  if (gateInput?.isSwitchedOff) return hold(em, message, SWITCHED_OFF_DETAIL);
  message.status = 'sending';
  message.statusDetail = null;
  return 'proceed';
}

/** Keeps an accepted message until what holds it ends; its release starts a new run. */
async function hold(em: EntityManager, message: Message, detail: string): Promise<'held'> {
  const { recipients, unsent } = await findUnsentRecipients(em, message.id);
  const hasOpenAttempt = recipients.filter(({ status }) => !isSettled(status)).length > unsent.length;
  const isUntouched = recipients.every(({ status }) => status === 'pending');
  if (hasOpenAttempt) message.status = 'sending';
  else message.status = isUntouched ? 'queued' : 'deferred';
  message.statusDetail = detail;
  return 'held';
}

/** Whether the relay may have accepted the message. If not, `needs_attention` means that sending was stopped. */
async function hasUnknownOutcome(em: EntityManager, messageId: string): Promise<boolean> {
  return (await em.count(SendAttemptEntity, { messageId, state: { $in: ['attempting', 'ambiguous'] } })) > 0;
}

/**
 * Rejects a locked message that a suspension for abuse affects. Recipients that are in transmission keep their outcome.
 *
 * @returns false if no such suspension is in force.
 */
export async function rejectSuspended(
  transaction: Transaction,
  events: EventService,
  message: Message,
): Promise<boolean> {
  const gateInput = await readGateInputOfMessage(transaction, message.id);
  const refusal = gateInput?.suspendedForAbuse ? findRefusal(gateInput) : null;
  if (!refusal) return false;
  await reject(transaction, events, message, refusal);
  return true;
}

/** Rejects the unsent recipients of a message that the gate refuses at dispatch. Returns as {@link rejectUnsent}. */
async function reject(
  transaction: Transaction,
  events: EventService,
  message: Message,
  refusal: Refusal,
): Promise<'settled' | 'open'> {
  const { recipients, unsent } = await findUnsentRecipients(transaction.em, message.id);
  const rejection = { reason: refusal.reason, detail: refusal.detail };
  return rejectUnsent(transaction, events, message, { recipients, unsent, rejection });
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
  const changes = { ...createEmptyChanges(), bounced };
  await recordOutcomeEvents(transaction, events, { message, recipients }, changes, now);
  return settled ? 'settled' : 'open';
}
