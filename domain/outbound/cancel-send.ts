import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { CANCEL_SEND, sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import { requireActiveInbox } from '../inboxes/find-inbox.ts';
import type { Message } from '../messages/message.entity.ts';
import { loadDetails, type MessageDetails, WHOLE_MESSAGE } from '../messages/message-details.ts';
import { isSettled, isUnsettled, type SendState, settledAs } from './message-status.ts';
import { applyAttempts, type OutcomeService } from './outcome.service.ts';
import {
  findUnsentRecipients,
  hasOpenRecipient,
  lockOutcomeState,
  type OutcomeState,
  readOutcomeState,
  rejectRecipients,
  saveStatus,
  statusOfRecipients,
} from './outcome-state.ts';

const CANCELED_DETAIL = 'Canceled through the API.';

/**
 * Cancels what has not been transmitted: the message, or its remaining recipients if others were already transmitted
 * to. Transmissions to those others and their outcomes are not affected.
 *
 * @throws AppError `not_found`, `conflict`, `inbox_suspended`.
 */
export async function cancelSend(
  transaction: Transaction,
  outbox: Outbox,
  scope: Scope,
  messageId: string,
): Promise<MessageDetails> {
  const { db } = transaction;
  const message = await db
    .selectFrom('messages')
    .select(WHOLE_MESSAGE)
    .where('id', '=', messageId)
    .where((eb) => eb.and(columnsWithin(scope)))
    .forUpdate()
    .executeTakeFirst();
  if (!message) throw notFound('message', messageId);
  await requireActiveInbox(db, message.inboxId);
  const state = await readOutcomeState(db, message);
  if (message.direction === 'inbound' || !(await cancelUnsent(db, state, CANCELED_DETAIL)))
    throw new AppError('conflict', {
      detail: getCancelProblem(message),
      fix: getCancelFix(message),
      extensions: { message_status: message.status },
    });
  signalCancel(transaction, outbox, message);
  const { status, statusDetail } = state.message;
  return loadDetails(db, { ...message, status, statusDetail, updatedAt: state.now });
}

function getCancelProblem({ direction, status }: Pick<Message, 'direction' | 'status'>): string {
  if (direction === 'inbound') return 'A received message cannot be canceled.';
  if (isUnsent(status)) return `There is nothing left to cancel: the message is ${status}.`;
  return 'It is too late to cancel: the mail server may have the message already.';
}

const isUnsent = (status: Message['status']): boolean =>
  status === 'canceled' || status === 'rejected' || status === 'failed';

function getCancelFix({ direction, status }: Pick<Message, 'direction' | 'status'>): string {
  if (direction === 'inbound')
    return 'Only outbound messages can be canceled; delete the message instead: DELETE /api/v1/messages/{id}.';
  if (isUnsent(status)) return 'No action is needed: the message will not be sent.';
  return 'A transmitted message cannot be recalled; wait for its outcome: GET /api/v1/messages/{id}/wait.';
}

function signalCancel(
  transaction: Transaction,
  outbox: Outbox,
  { id, organizationId }: Pick<Message, 'id' | 'organizationId'>,
): void {
  outbox.enqueue(transaction, organizationId, {
    signal: { workflowId: sendMessageWorkflowId(id), signalName: CANCEL_SEND, args: [] },
  });
}

/**
 * Cancels what has not been transmitted, on behalf of the workflow run. Recipients that were already transmitted to are not
 * affected. One whose outcome is unknown is rejected if it turns out that the relay has deferred it.
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
    const { db } = transaction;
    await markCanceled(db, messageId);
    const state = await lockOutcomeState(db, messageId);
    if (!state) return settledAs('deleted');
    const { message } = state;
    if (!isUnsettled(message.status)) return settledAs(message.status);
    if ((await cancelUnsent(db, state, detail)) && !isUnsettled(message.status))
      return settledAs(message.status);
    return applyAttempts(transaction, outcomes, messageId);
  });
}

/**
 * Marks the attempts whose outcome is unknown, with the message locked. A worker records results without that lock: an attempt
 * that it ends before the mark is read as ended afterwards.
 */
async function markCanceled(db: Db, messageId: string): Promise<void> {
  await db
    .with('locked', (query) =>
      query.selectFrom('messages').select('id').where('id', '=', messageId).forUpdate(),
    )
    .updateTable('send_attempts')
    .set({ canceled: true })
    .where('message_id', 'in', (eb) => eb.selectFrom('locked').select('id'))
    .where('state', 'in', ['attempting', 'ambiguous'])
    .execute();
}

/**
 * Cancels a locked message, or its remaining recipients if others were already transmitted to.
 *
 * @returns false if it is too late; nothing changes in that case.
 */
async function cancelUnsent(db: Db, state: OutcomeState, detail: string): Promise<boolean> {
  if (!isUnsettled(state.message.status)) return false;
  if (await cancelMessage(db, state, detail)) return true;
  return cancelRemainingRecipients(db, state, detail);
}

/**
 * Cancels a message that has not been transmitted to any recipient. Dispatch takes the same lock before each attempt, so a
 * message is either in transmission or canceled, never both.
 */
async function cancelMessage(db: Db, state: OutcomeState, detail: string): Promise<boolean> {
  const { message, recipients } = state;
  const started = await selectStarted(db, [message.id]).limit(1).execute();
  if (started.length > 0) return false;
  const open = recipients.filter(({ status }) => !isSettled(status));
  rejectRecipients(state, open, detail);
  message.status = 'canceled';
  message.statusDetail = detail;
  await saveStatus(db, state);
  return true;
}

/** Selects the attempts in which the relay may have accepted the message. */
const selectStarted = (db: Db, messageIds: readonly string[]) =>
  db
    .selectFrom('send_attempts')
    .select('message_id as messageId')
    .where('message_id', '=', anyOf(messageIds))
    .where('state', 'in', ['attempting', 'accepted', 'ambiguous']);

/**
 * Rejects the recipients of a partially transmitted message that have not been transmitted to. If the outcome of every
 * other recipient is known, the status of the message is derived from them. Otherwise it does not change: a transmission
 * in progress is finished and recorded, and an ambiguous one still needs a decision.
 */
async function cancelRemainingRecipients(db: Db, state: OutcomeState, detail: string): Promise<boolean> {
  const { message } = state;
  const unsent = findUnsentRecipients(state);
  if (message.status === 'queued' || unsent.length === 0) return false;
  rejectRecipients(state, unsent, detail);
  if (!hasOpenRecipient(state)) {
    message.status = statusOfRecipients(state);
    message.statusDetail = detail;
  }
  await saveStatus(db, state);
  return true;
}

const BATCH_SIZE = 200;

/** Cancels the queued messages of an inbox that is being deleted. Messages already handed to the relay continue. */
export async function cancelUnsentOfInbox(
  transaction: Transaction,
  outbox: Outbox,
  inboxId: string,
): Promise<void> {
  const { db } = transaction;
  for (let after = ''; ; ) {
    const messages = await db
      .selectFrom('messages')
      .select(['id', 'org_id as organizationId'])
      .where('inbox_id', '=', inboxId)
      .where('status', 'in', ['queued', 'sending', 'deferred'])
      .where('id', '>', after)
      .orderBy('id')
      .limit(BATCH_SIZE)
      .forUpdate()
      .execute();
    const started = await selectStarted(
      db,
      messages.map(({ id }) => id),
    ).execute();
    const kept = new Set(started.map(({ messageId }) => messageId));
    const unsent = messages.filter(({ id }) => !kept.has(id));
    await cancelMessages(
      db,
      unsent.map(({ id }) => id),
      'The inbox was deleted.',
    );
    for (const message of unsent) signalCancel(transaction, outbox, message);
    const last = messages.at(-1);
    if (!last || messages.length < BATCH_SIZE) return;
    after = last.id;
  }
}

async function cancelMessages(db: Db, ids: readonly string[], detail: string): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable('messages')
    .set({ status: 'canceled', status_detail: detail, updated_at: sql`now()` })
    .where('id', '=', anyOf(ids))
    .execute();
  await db
    .updateTable('message_recipients')
    .set({ status: 'rejected', diagnostic_code: detail, updated_at: sql`now()` })
    .where('message_id', '=', anyOf(ids))
    .where('status', 'in', ['pending', 'deferred'])
    .execute();
}
