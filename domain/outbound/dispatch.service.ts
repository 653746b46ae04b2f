import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { AmbiguityResolution } from '../../workflows/outbound/send-message.contract.ts';
import type { SendState } from '../delivery-reports/delivery-outcome.ts';
import type { EventService } from '../events/event.service.ts';
import { type Message, MessageEntity } from '../messages/message.entity.ts';
import { type Recipient, RecipientEntity } from '../messages/recipient.entity.ts';
import { cancelRemainingRecipients, cancelUnsentMessage } from './cancel-unsent.ts';
import { readGateInputOfMessage } from './gate-input.ts';
import { deriveStatus, isSettled } from './message-status.ts';
import type { OutcomeService } from './outcome.service.ts';
import { noChanges, type OutcomeChanges, recordOutcomeEvents } from './outcome-events.ts';
import { SendAttemptEntity } from './send-attempt.entity.ts';
import { findRefusal, type GateInput, type Refusal, suppressedRecipients } from './send-gate.ts';

/** What the lifecycle `sendMessage` asks for, step by step. Every step may be repeated. */
export interface DispatchService {
  /**
   * Lets a message pass the gate and marks it `sending`. A refusal is recorded, with its event, in the same
   * transaction.
   *
   * @returns `finished` where there is nothing (more) to send.
   */
  open(messageId: string): Promise<'proceed' | 'finished'>;
  /** Folds the attempts into recipients, message and events. */
  record(messageId: string): Promise<SendState>;
  /** A person says what became of the ambiguous attempts. */
  resolveAmbiguity(messageId: string, resolution: AmbiguityResolution): Promise<SendState>;
  /**
   * Nothing more is to leave: what has left takes its course.
   *
   * @returns `too_late` where nothing is left to stop, or nobody knows what became of a recipient.
   */
  cancel(messageId: string, detail: string): Promise<'canceled' | 'too_late'>;
}

export interface DispatchServiceOptions {
  database: Database;
  outcomes: OutcomeService;
  events: EventService;
}

export function createDispatchService({
  database,
  outcomes,
  events,
}: DispatchServiceOptions): DispatchService {
  const fold = async (transaction: Transaction, messageId: string) =>
    (await outcomes.apply(transaction, messageId, [])) ?? 'settled';

  return {
    open: async (messageId) =>
      (await openWithoutLock(database, messageId))
        ? 'proceed'
        : database.systemTransaction((transaction) => open(transaction, events, messageId)),
    record: (messageId) => database.systemTransaction((transaction) => fold(transaction, messageId)),

    resolveAmbiguity: (messageId, resolution) =>
      database.systemTransaction(async (transaction) => {
        const message = await lockMessage(transaction, messageId);
        const { em } = transaction;
        await em.nativeUpdate(
          SendAttemptEntity,
          { messageId, state: 'ambiguous' },
          { state: resolution === 'sent' ? 'accepted' : 'deferred', recorded: false },
        );
        // Queued anew: the answer may have taken longer than a deferred message is retried.
        if (message && resolution === 'resend')
          await em.nativeUpdate(MessageEntity, { id: messageId }, { queuedAt: new Date() });
        return fold(transaction, messageId);
      }),

    cancel: (messageId, detail) =>
      database.systemTransaction(async (transaction) => {
        const { em } = transaction;
        const message = await lockMessage(transaction, messageId);
        if (!message || message.status === 'canceled') return 'canceled';
        const stopped =
          (await cancelUnsentMessage(em, message, detail)) ||
          (await cancelRemainingRecipients(em, message, detail));
        return stopped ? 'canceled' : 'too_late';
      }),
  };
}

function lockMessage({ em }: Transaction, messageId: string): Promise<Message | null> {
  return em.findOne(MessageEntity, { id: messageId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
}

/** The usual case, in two statements and without a lock: the gate lets the message pass, and it is still to be sent. */
async function openWithoutLock(database: Database, messageId: string): Promise<boolean> {
  return database.autocommit(async (em) => {
    const subject = await readGateInputOfMessage(em, messageId);
    if (!subject || findRefusal(subject) || suppressedRecipients(subject).length > 0) return false;
    const opened = await em.execute(
      `update messages set status = 'sending', updated_at = now()
       where id = ? and status in ('queued', 'deferred', 'sending') returning id`,
      [messageId],
    );
    return opened.length === 1;
  });
}

async function open(
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
  const subject = await readGateInputOfMessage(em, message.id);
  const refusal = subject && findRefusal(subject);
  if (refusal && (await reject(transaction, events, message, refusal)) === 'settled') return 'finished';
  if (subject && !refusal && (await bounceSuppressed(transaction, events, message, subject)) === 'settled')
    return 'finished';
  message.status = 'sending';
  return 'proceed';
}

/**
 * Refused when its turn came: what has not left does not leave.
 *
 * @returns `open` where a worker died while it spoke to the relay for a recipient, or before it told what came of it:
 * transmitting sends nothing then, but finds that out.
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
    { ...noChanges(), rejected, rejection: { reason: refusal.reason, detail: refusal.detail } },
    now,
  );
  return recipients.every(({ status }) => isSettled(status)) ? 'settled' : 'open';
}

/** Of an address suppressed by hand or for a complaint, no server ever said one; SES says this. */
const DEFAULT_SUPPRESSED_STATUS = '5.1.1';

/**
 * Leaves the suppressed recipients out, and tells of them as bounced. Others may still be to be sent to.
 *
 * @returns `settled` where none is.
 */
async function bounceSuppressed(
  transaction: Transaction,
  events: EventService,
  message: Message,
  subject: GateInput,
): Promise<'settled' | 'open'> {
  const suppressed = new Map(
    suppressedRecipients(subject).map((standing) => [standing.email, standing.suppression]),
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
  await recordOutcomeEvents(transaction, events, message, { ...noChanges(), bounced }, now);
  return settled ? 'settled' : 'open';
}

/** Recipients of whom nothing has left, and nothing is leaving, beside all of them. */
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
