import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { EventService } from '../events/event.service.ts';
import { MAX_EVENT_BYTES } from '../events/event-types.ts';
import { inboxSuspended } from '../identity/authentication.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import { requireActiveInbox } from '../inboxes/find-inbox.ts';
import { announceReceived } from './announce-received.ts';
import { isHidden, rejectServiceLabels } from './hidden-labels.ts';
import { MessageEntity } from './message.entity.ts';
import { loadDetails, type MessageDetails, WHOLE_MESSAGE, type WholeMessage } from './message-details.ts';
import { refreshThreads } from './refresh-thread.ts';
import { lockLivingThreads, lockThreadOfMessage } from './resolve-thread.ts';

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
      const labels = change(message.labels);
      if (labels.length === message.labels.length) return loadDetails(transaction.db, message);
      const [changed = message] = await setLabels(transaction, events, [{ message, labels }]);
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

    /**
     * Removes and adds labels of several messages, in one transaction. Each message is changed or refused by itself.
     *
     * @returns what refused each message, in the order of `messageIds`; undefined for those that have the labels now.
     * @throws AppError `unprocessable` for labels that only the service adds.
     */
    changeMany: (
      scope: Scope,
      messageIds: readonly string[],
      { add, remove }: { add: readonly string[]; remove: readonly string[] },
    ): Promise<(AppError | undefined)[]> =>
      database.transaction(scope, async (transaction) => {
        rejectServiceLabels(add);
        const messages = await lockMessages(transaction.db, scope, messageIds);
        const refusals = new Map<string, AppError>();
        const changes: Change<LabeledMessage>[] = [];
        for (const { isInboxActive, ...message } of messages) {
          const kept = message.labels.filter((label) => !remove.includes(label));
          const labels = [...new Set([...kept, ...add])];
          const refusal = isInboxActive ? findLabelLimit(labels) : inboxSuspended();
          if (refusal) refusals.set(message.id, refusal);
          else if (!hasSameLabels(labels, message.labels)) changes.push({ message, labels });
        }
        await setLabels(transaction, events, changes);
        const known = new Set(messages.map(({ id }) => id));
        return messageIds.map((id) => (known.has(id) ? refusals.get(id) : notFound('message', id)));
      }),
  };
}

const hasSameLabels = (labels: readonly string[], others: readonly string[]) =>
  labels.length === others.length && labels.every((label) => others.includes(label));

/** What a change of labels reads of a message. Of its content only what its event shows. */
type LabeledMessage = RowOf<typeof MessageEntity> & Pick<WholeMessage, 'extractedText'>;

/**
 * Locks the threads first, in the same order as code that adds messages, and then the messages. The text is read only of
 * messages that may be announced, and only as much as an event has.
 */
async function lockMessages(
  db: Db,
  scope: Scope,
  messageIds: readonly string[],
): Promise<(LabeledMessage & { isInboxActive: boolean })[]> {
  const within = columnsWithin(scope);
  const located = await db
    .selectFrom('messages')
    .select('thread_id as threadId')
    .distinct()
    .where('id', '=', anyOf(messageIds))
    .where((eb) => eb.and(within))
    .execute();
  await lockLivingThreads(
    db,
    located.map(({ threadId }) => threadId),
  );
  return db
    .selectFrom('messages')
    .select(columnsOf(MessageEntity))
    .select([
      sql<string | null>`case when announced then null else left(extracted_text, ${MAX_EVENT_BYTES}) end`.as(
        'extractedText',
      ),
      sql<boolean>`exists (select from inboxes where inboxes.id = messages.inbox_id and inboxes.status = 'active')`.as(
        'isInboxActive',
      ),
    ])
    .where('id', '=', anyOf(messageIds))
    .where((eb) => eb.and(within))
    .orderBy('id')
    .forUpdate()
    .execute();
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

interface Change<Found extends LabeledMessage> {
  message: Found;
  labels: string[];
}

type ChangedLabels = Pick<LabeledMessage, 'id' | 'labels' | 'announced'>;

/** Stores the labels of locked messages. A received message that becomes visible for the first time is announced. */
async function setLabels<Found extends LabeledMessage>(
  transaction: Transaction,
  events: EventService,
  changes: readonly Change<Found>[],
): Promise<Found[]> {
  if (changes.length === 0) return [];
  const { db } = transaction;
  const changed = changes.map(({ message, labels }) => {
    const isFirstShown = message.direction === 'inbound' && !message.announced && !isHidden(labels);
    return { isFirstShown, message: { ...message, labels, announced: message.announced || isFirstShown } };
  });
  const rows = changed.map(
    ({ message: { id, labels, announced } }): ChangedLabels => ({ id, labels, announced }),
  );
  await db
    .updateTable('messages')
    .from(
      sql<ChangedLabels>`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)`.as<'changed'>(
        sql`changed(id text, labels text[], announced boolean)`,
      ),
    )
    .set(({ ref }) => ({
      labels: ref('changed.labels'),
      announced: ref('changed.announced'),
      updated_at: sql`now()`,
    }))
    .whereRef('messages.id', '=', 'changed.id')
    .execute();
  for (const { message, isFirstShown } of changed)
    if (isFirstShown) await announceReceived(transaction, events, message);
  await refreshThreads(db, [...new Set(changed.map(({ message }) => message.threadId))]);
  return changed.map(({ message }) => message);
}

function requireLabelLimit(labels: string[]): string[] {
  const refusal = findLabelLimit(labels);
  if (refusal) throw refusal;
  return labels;
}

function findLabelLimit(labels: readonly string[]): AppError | undefined {
  if (labels.length <= MAX_MESSAGE_LABELS) return undefined;
  return new AppError('unprocessable', {
    detail: `The message would have ${labels.length} labels; at most ${MAX_MESSAGE_LABELS} are allowed.`,
    fix: 'Remove labels from the message first: POST /api/v1/messages/{id}/labels/remove.',
  });
}
