import { LockMode } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { MailTransport } from '../../platform/mail-transport/mail-transport.ts';
import type { ReturnPaths } from '../../platform/return-path.ts';
import type { Storage } from '../../platform/storage.ts';
import type { AmbiguityResolution } from '../../workflows/messages/send-message.contract.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { EventService } from '../webhooks/event.service.ts';
import { cancelUnsent } from './cancel-unsent.ts';
import type { SendState } from './delivery-outcome.ts';
import { type Message, MessageEntity } from './message.entity.ts';
import { isSettled } from './message-status.ts';
import type { OutcomeService } from './outcome.service.ts';
import { announce, noChanges } from './outcome-events.ts';
import { type Recipient, RecipientEntity } from './recipient.entity.ts';
import { SendAttemptEntity } from './send-attempt.entity.ts';
import { beginAttempt, settleAttempt } from './send-attempts.ts';
import { passGate, type Refusal } from './send-gate.ts';
import { ensureStored, rawSource } from './stored-mime.ts';

/** What the lifecycle `sendMessage` asks for, step by step. Every step may be repeated. */
export interface DispatchService {
  /**
   * Lets a message pass the gate and marks it `sending`. A refusal is recorded, with its event, in the same
   * transaction.
   *
   * @returns `finished` where there is nothing (more) to send.
   */
  open(messageId: string): Promise<'proceed' | 'finished'>;
  /**
   * One SMTP transaction for each recipient that has none settled. Before each an attempt row is committed, after each
   * its result is; a row found open means somebody died in between, and becomes `ambiguous` instead of a second mail.
   *
   * @param aborted looked at between recipients: stop before the next one.
   */
  transmit(messageId: string, aborted: () => boolean): Promise<void>;
  /** Folds the attempts into recipients, message and events. */
  record(messageId: string): Promise<SendState>;
  /** A person says what became of the ambiguous attempts. */
  resolveAmbiguity(messageId: string, resolution: AmbiguityResolution): Promise<SendState>;
  /** @returns `too_late` where something left, or may have left. */
  cancel(messageId: string, detail: string): Promise<'canceled' | 'too_late'>;
}

export interface DispatchServiceOptions {
  database: Database;
  storage: Pick<Storage, 'putBytes' | 'putStream' | 'getStream' | 'getBytes'>;
  /** What mail of production environments leaves by. */
  mailTransport: MailTransport;
  /** What mail of sandbox environments ends in: nothing leaves. */
  simulator: MailTransport;
  returnPaths: ReturnPaths;
  outcomes: OutcomeService;
  events: EventService;
}

export function createDispatchService(options: DispatchServiceOptions): DispatchService {
  const { database, outcomes, events } = options;
  const fold = async (transaction: Transaction, messageId: string) =>
    (await outcomes.fold(transaction, messageId, [])) ?? 'settled';

  return {
    open: (messageId) => database.systemTransaction((transaction) => open(transaction, events, messageId)),
    transmit: (messageId, aborted) => transmit(options, messageId, aborted),
    record: (messageId) => database.systemTransaction((transaction) => fold(transaction, messageId)),

    resolveAmbiguity: (messageId, resolution) =>
      database.systemTransaction(async (transaction) => {
        await lockMessage(transaction, messageId);
        await transaction.em.nativeUpdate(
          SendAttemptEntity,
          { messageId, state: 'ambiguous' },
          { state: resolution === 'sent' ? 'accepted' : 'deferred', recorded: false },
        );
        return fold(transaction, messageId);
      }),

    cancel: (messageId, detail) =>
      database.systemTransaction(async (transaction) => {
        const message = await lockMessage(transaction, messageId);
        if (!message || message.status === 'canceled') return 'canceled';
        return (await cancelUnsent(transaction.em, message, detail)) ? 'canceled' : 'too_late';
      }),
  };
}

function lockMessage({ em }: Transaction, messageId: string): Promise<Message | null> {
  return em.findOne(MessageEntity, { id: messageId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
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
  const organization = await em.findOneOrFail(OrganizationEntity, { id: message.organizationId });
  const environment = await em.findOneOrFail(EnvironmentEntity, { id: message.environmentId });
  const inbox = await em.findOneOrFail(InboxEntity, { id: message.inboxId });
  const refusal = passGate({ organization, environment, inbox });
  if (refusal) {
    await reject(transaction, events, message, refusal);
    return 'finished';
  }
  message.status = 'sending';
  return 'proceed';
}

/** Refused when its turn came: what has not left does not leave. */
async function reject(transaction: Transaction, events: EventService, message: Message, refusal: Refusal) {
  const { em } = transaction;
  const now = new Date();
  const recipients = await em.find(RecipientEntity, { messageId: message.id });
  const rejected = recipients.filter(({ status }) => !isSettled(status));
  for (const recipient of rejected) {
    recipient.status = 'rejected';
    recipient.diagnosticCode = refusal.detail;
    recipient.updatedAt = now;
  }
  if (rejected.length === recipients.length) message.status = 'rejected';
  message.statusDetail = refusal.detail;
  await announce(
    transaction,
    events,
    message,
    { ...noChanges(), rejected, rejection: { reason: refusal.reason, detail: refusal.detail } },
    now,
  );
}

async function transmit(
  options: DispatchServiceOptions,
  messageId: string,
  aborted: () => boolean,
): Promise<void> {
  const { database, storage, returnPaths } = options;
  const loaded = await load(database, messageId);
  if (!loaded) return;
  const { message, recipients, sandbox } = loaded;
  const stored = await ensureStored(database, storage, message);
  const openRaw = rawSource(storage, stored);
  const transport = sandbox ? options.simulator : options.mailTransport;
  for (const recipient of recipients) {
    if (isSettled(recipient.status)) continue;
    if (aborted()) return;
    const attempt = await beginAttempt(database, message, recipient.position);
    if (!attempt) continue;
    const result = await transport.transmit({
      sender: returnPaths.addressFor(message.id, recipient.position),
      recipient: recipient.email,
      openRaw,
      sizeBytes: stored.sizeBytes,
      envelopeId: `${message.id}.${recipient.position}`,
    });
    await settleAttempt(database, attempt, result);
  }
}

async function load(
  database: Database,
  messageId: string,
): Promise<{ message: Message; recipients: Recipient[]; sandbox: boolean } | null> {
  return database.autocommit(async (em) => {
    const message = await em.findOne(
      MessageEntity,
      { id: messageId },
      { populate: ['textBody', 'htmlBody', 'headers'] },
    );
    if (!message) return null;
    const recipients = await em.find(RecipientEntity, { messageId }, { orderBy: { position: 'asc' } });
    const environment = await em.findOneOrFail(EnvironmentEntity, { id: message.environmentId });
    return { message, recipients, sandbox: environment.kind === 'sandbox' };
  });
}
