import { anyOf } from '../../platform/database/any-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  DELIVERY_OUTCOME_RECORDED,
  trackDeliveryWorkflowId,
} from '../../workflows/outbound/track-delivery.contract.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import { requireActiveInbox } from '../inboxes/find-inbox.ts';
import { type EventRedaction, eraseMessageCopies } from './erase-message-copies.ts';
import type { Message, MessageStatus } from './message.entity.ts';
import { refreshThreads } from './refresh-thread.ts';
import { findThreadFamily, lockLivingThread, lockThreadOfMessage } from './resolve-thread.ts';

export type DeletionService = ReturnType<typeof createDeletionService>;

/** The relay may have accepted the message or may still receive it, so its outcome needs the row. */
export const IN_FLIGHT_STATUSES: readonly MessageStatus[] = [
  'queued',
  'sending',
  'deferred',
  'needs_attention',
];
/** Further `trackDelivery` runs of a long thread end by themselves after 5 days. */
const MAX_SIGNALED_RUNS = 500;

export function createDeletionService({
  database,
  outbox,
  events,
}: {
  database: Database;
  outbox: Outbox;
  events: EventRedaction;
}) {
  return {
    /**
     * Deletes a message with its recipients, attachments and search entry. The sweep deletes its bytes unless another row
     * shares them. An empty thread is also deleted. Events about the message stay, without its content.
     *
     * @throws AppError `not_found`; `conflict` while the message is being sent.
     */
    deleteMessage: (scope: Scope, messageId: string): Promise<void> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        // Lock the thread first, in the same order as code that adds messages.
        const thread = await lockThreadOfMessage(db, scope, messageId);
        const message = thread && (await lockMessage(db, messageId));
        if (!message) throw notFound('message', messageId);
        await requireActiveInbox(transaction.db, message.inboxId);
        if (IN_FLIGHT_STATUSES.includes(message.status)) throw messageInFlight(message);
        stopTracking(transaction, outbox, [message]);
        await eraseMessageCopies(transaction, events, [message]);
        await db.deleteFrom('messages').where('id', '=', messageId).execute();
        await refreshOrDeleteThread(db, thread.id);
      }),

    /**
     * Deletes a thread with all its messages, including hidden ones, and its aliases.
     *
     * @throws AppError `not_found`; `conflict` while one of its messages is being sent. Nothing is deleted in that case.
     */
    deleteThread: (scope: Scope, threadId: string): Promise<void> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const thread = await lockLivingThread(db, threadId, columnsWithin(scope));
        if (!thread) throw notFound('thread', threadId);
        await requireActiveInbox(transaction.db, thread.inboxId);
        const threadIds = await findThreadFamily(db, thread.id);
        const open = await lockMessageInFlight(db, threadIds);
        if (open) throw messageInFlight(open);
        stopTracking(transaction, outbox, await findTracked(db, threadIds));
        await eraseMessageCopies(transaction, events, await lockMessages(db, threadIds));
        await db.deleteFrom('messages').where('thread_id', '=', anyOf(threadIds)).execute();
        await db.deleteFrom('threads').where('id', '=', thread.id).execute();
      }),
  };
}

const DELETED_COLUMNS = [
  'id',
  'org_id as organizationId',
  'inbox_id as inboxId',
  'draft_id as draftId',
  'status',
  'tracked',
] as const;

const lockMessage = (db: Db, messageId: string) =>
  db
    .selectFrom('messages')
    .select(DELETED_COLUMNS)
    .where('id', '=', messageId)
    .forUpdate()
    .executeTakeFirst();

const lockMessageInFlight = (db: Db, threadIds: readonly string[]) =>
  db
    .selectFrom('messages')
    .select(['id', 'status'])
    .where('thread_id', '=', anyOf(threadIds))
    .where('status', 'in', IN_FLIGHT_STATUSES)
    .limit(1)
    .forUpdate()
    .executeTakeFirst();

const findTracked = (db: Db, threadIds: readonly string[]) =>
  db
    .selectFrom('messages')
    .select(DELETED_COLUMNS)
    .where('thread_id', '=', anyOf(threadIds))
    .where('tracked', '=', true)
    .where('status', '=', 'sent')
    .orderBy('id', 'desc')
    .limit(MAX_SIGNALED_RUNS)
    .execute();

/** Locks the messages of a thread and its aliases, in order of their ids. */
const lockMessages = (db: Db, threadIds: readonly string[]) =>
  db
    .selectFrom('messages')
    .select(['id', 'draft_id as draftId'])
    .where('thread_id', '=', anyOf(threadIds))
    .orderBy('id')
    .forUpdate()
    .execute();

/** Deletes an empty thread, and refreshes the summary of any other. */
async function refreshOrDeleteThread(db: Db, threadId: string): Promise<void> {
  const threadIds = await findThreadFamily(db, threadId);
  const remaining = await db
    .selectFrom('messages')
    .select('id')
    .where('thread_id', '=', anyOf(threadIds))
    .limit(1)
    .executeTakeFirst();
  if (remaining) await refreshThreads(db, [threadId]);
  else await db.deleteFrom('threads').where('id', '=', threadId).execute();
}

/** Ends the `trackDelivery` runs of deleted messages. */
export function stopTracking(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  messages: Pick<Message, 'id' | 'organizationId' | 'tracked' | 'status'>[],
): void {
  for (const { id, organizationId, tracked, status } of messages) {
    if (!tracked || status !== 'sent') continue;
    outbox.enqueue(transaction, organizationId, {
      signal: {
        workflowId: trackDeliveryWorkflowId(id),
        signalName: DELIVERY_OUTCOME_RECORDED,
        args: [{ openRecipients: 0 }],
      },
    });
  }
}

function messageInFlight({ id, status }: Pick<Message, 'id' | 'status'>): AppError {
  return new AppError('conflict', {
    detail: `The message ${id} is ${status}: it may still be transmitted.`,
    fix:
      status === 'needs_attention'
        ? 'Resolve its outcome first (update resolveAmbiguous in the Temporal UI), then delete it.'
        : 'Cancel it (POST /api/v1/messages/{id}/cancel), or wait until it is sent (GET /api/v1/messages/{id}/wait), then delete it.',
    extensions: { message_status: status },
  });
}
