import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { CANCEL_SEND, sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { requireActiveInbox } from '../inboxes/find-inbox.ts';
import { type Message, MessageEntity } from '../messages/message.entity.ts';
import { loadDetails, type MessageDetails } from '../messages/message-details.ts';
import { RecipientEntity } from '../messages/recipient.entity.ts';
import { deriveStatus, isSettled, isUnsettled, type SendState, settledAs } from './message-status.ts';
import { applyAttempts, type OutcomeService } from './outcome.service.ts';
import { SendAttemptEntity } from './send-attempt.entity.ts';
import { findUnsentRecipients, lockMessage } from './unsent-recipients.ts';

const CANCELED_DETAIL = 'Canceled through the API.';

/**
 * Cancels what has not been transmitted: the message, or its remaining recipients if others were already transmitted to.
 * Their transmission and its outcome are not affected.
 *
 * @throws AppError `not_found`, `conflict`, `inbox_suspended`.
 */
export async function cancelSend(
  transaction: Transaction,
  outbox: Outbox,
  scope: Scope,
  messageId: string,
): Promise<MessageDetails> {
  const { db, em } = transaction;
  const message = await em.findOne(
    MessageEntity,
    { id: messageId, ...withinScope(scope) },
    {
      populate: ['textBody', 'htmlBody', 'extractedText', 'hiddenText', 'headers'],
      lockMode: LockMode.PESSIMISTIC_WRITE,
    },
  );
  if (!message) throw notFound('message', messageId);
  await requireActiveInbox(db, message.inboxId);
  const isCanceled =
    message.direction === 'outbound' &&
    ((await cancelUnsentMessage(em, message, CANCELED_DETAIL)) ||
      (await cancelRemainingRecipients(em, message, CANCELED_DETAIL)));
  if (!isCanceled) {
    throw new AppError('conflict', {
      detail: `The message is ${message.status}; only recipients that have not been transmitted to can be canceled.`,
      fix: getCancelFix(message),
      extensions: { message_status: message.status },
    });
  }
  await em.flush();
  outbox.enqueue(transaction, message.organizationId, {
    signal: { workflowId: sendMessageWorkflowId(message.id), signalName: CANCEL_SEND, args: [] },
  });
  return loadDetails(db, message);
}

function getCancelFix({ direction, status }: Message): string {
  if (direction === 'inbound') return 'Only outbound messages can be canceled; delete the message instead.';
  if (status === 'canceled' || status === 'rejected' || status === 'failed')
    return 'No action is needed: the message will not be sent.';
  return 'A transmitted message cannot be recalled; wait for its outcome.';
}

/**
 * Cancels what has not been transmitted, for the run of the send. Recipients that were already transmitted to are not
 * affected, nor those whose outcome is unknown.
 *
 * @returns what is left to do.
 */
export function cancelOpenRecipients(
  database: Database,
  outcomes: OutcomeService,
  messageId: string,
  detail: string,
): Promise<SendState> {
  return database.systemTransaction(async (transaction) => {
    const { em } = transaction;
    const message = await lockMessage(transaction, messageId);
    if (!message || !isUnsettled(message.status)) return settledAs(message?.status ?? 'deleted');
    const isCanceled =
      (await cancelUnsentMessage(em, message, detail)) ||
      (await cancelRemainingRecipients(em, message, detail));
    if (isCanceled && !isUnsettled(message.status)) return settledAs(message.status);
    await em.flush();
    return applyAttempts(transaction, outcomes, messageId);
  });
}

const BATCH_SIZE = 200;

/** Cancels the queued messages of an inbox that is being deleted. Messages already handed to the relay continue. */
export async function cancelUnsentOfInbox(
  transaction: Transaction,
  outbox: Outbox,
  inboxId: string,
): Promise<void> {
  const { em } = transaction;
  for (let after = ''; ; ) {
    const messages = await em.find(
      MessageEntity,
      { inboxId, status: { $in: ['queued', 'sending', 'deferred'] }, id: { $gt: after } },
      { orderBy: { id: 'asc' }, limit: BATCH_SIZE, lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    for (const message of messages) {
      if (!(await cancelUnsentMessage(em, message, 'The inbox was deleted.'))) continue;
      outbox.enqueue(transaction, message.organizationId, {
        signal: { workflowId: sendMessageWorkflowId(message.id), signalName: CANCEL_SEND, args: [] },
      });
    }
    const last = messages.at(-1);
    if (!last || messages.length < BATCH_SIZE) return;
    after = last.id;
  }
}

/**
 * Cancels a message that has not been transmitted to any recipient. The caller holds the message's row lock. Dispatch
 * takes the same lock before each attempt, so a message is either in transmission or canceled, never both.
 *
 * @returns false if it is too late; nothing changes in that case.
 */
async function cancelUnsentMessage(em: EntityManager, message: Message, detail: string): Promise<boolean> {
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
async function cancelRemainingRecipients(
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
