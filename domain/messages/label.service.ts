import { sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import { requireActiveInbox } from '../inboxes/find-inbox.ts';
import { announceReceived } from './announce-received.ts';
import { isHidden, rejectServiceLabels } from './hidden-labels.ts';
import { loadDetails, type MessageDetails, WHOLE_MESSAGE, type WholeMessage } from './message-details.ts';
import { refreshThreads } from './refresh-thread.ts';
import { lockThreadOfMessage } from './resolve-thread.ts';

export type LabelService = ReturnType<typeof createLabelService>;

const MAX_MESSAGE_LABELS = 100;

export function createLabelService({ database, events }: { database: Database; events: EventService }) {
  const changeLabels = (
    scope: Scope,
    messageId: string,
    change: (labels: string[]) => string[],
  ): Promise<MessageDetails> =>
    database.transaction(scope, async (transaction) => {
      const message = await lockMessage(transaction, scope, messageId);
      await requireActiveInbox(transaction.db, message.inboxId);
      const changed = await setLabels(transaction, events, message, change(message.labels));
      return loadDetails(transaction.db, changed);
    });
  return {
    /**
     * Adds labels to the existing ones. `spam` hides the message.
     *
     * @throws AppError `not_found`, `inbox_suspended`; `unprocessable` over {@link MAX_MESSAGE_LABELS} and for labels that
     * only the service adds.
     */
    add: (scope: Scope, messageId: string, labels: string[]): Promise<MessageDetails> =>
      changeLabels(scope, messageId, (present) => {
        rejectServiceLabels(labels);
        return requireLabelLimit([...new Set([...present, ...labels])]);
      }),
    /**
     * Removes labels; labels that the message does not have are ignored. A received message that becomes visible for the
     * first time gets its `message.received` event.
     *
     * @throws AppError `not_found`.
     */
    remove: (scope: Scope, messageId: string, labels: string[]): Promise<MessageDetails> =>
      changeLabels(scope, messageId, (present) => present.filter((label) => !labels.includes(label))),
  };
}

/** Locks the thread first, in the same order as code that adds messages. */
async function lockMessage({ db }: Transaction, scope: Scope, messageId: string): Promise<WholeMessage> {
  const thread = await lockThreadOfMessage(db, scope, messageId);
  const message =
    thread &&
    (await db
      .selectFrom('messages')
      .select(WHOLE_MESSAGE)
      .where('id', '=', messageId)
      .forUpdate()
      .executeTakeFirst());
  if (!message) throw notFound('message', messageId);
  return message;
}

async function setLabels(
  transaction: Transaction,
  events: EventService,
  message: WholeMessage,
  labels: string[],
): Promise<WholeMessage> {
  if (labels.length === message.labels.length) return message;
  const { db } = transaction;
  const isFirstShown = message.direction === 'inbound' && !message.announced && !isHidden(labels);
  const announced = message.announced || isFirstShown;
  await db
    .updateTable('messages')
    .set({ labels, announced, updated_at: sql`now()` })
    .where('id', '=', message.id)
    .execute();
  const changed = { ...message, labels, announced };
  if (isFirstShown) await announceReceived(transaction, events, changed);
  await refreshThreads(db, [message.threadId]);
  return changed;
}

function requireLabelLimit(labels: string[]): string[] {
  if (labels.length <= MAX_MESSAGE_LABELS) return labels;
  throw new AppError('unprocessable', {
    detail: `The message would have ${labels.length} labels; at most ${MAX_MESSAGE_LABELS} are allowed.`,
    fix: 'Remove labels from the message first: POST /api/v1/messages/{id}/labels/remove.',
  });
}
