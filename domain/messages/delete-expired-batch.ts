import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { TRACKING_WINDOW_MS } from '../../workflows/outbound/track-delivery.contract.ts';
import { IN_FLIGHT_STATUSES, stopTracking } from './deletion.service.ts';
import { isEmptyThread } from './empty-thread.ts';
import { type EventRedaction, eraseMessageCopies } from './erase-message-copies.ts';
import { IS_VISIBLE } from './hidden-labels.ts';
import type { Message } from './message.entity.ts';
import { refreshThreads } from './refresh-thread.ts';

export interface ExpiredBatch {
  organizationId: string;
  environmentId: string;
  /** Messages that were received or sent before this time are deleted. */
  cutoff: Date;
  /** Id of the last message the previous batch read; null for the first batch. */
  after: string | null;
  now: Date;
}

export interface DeletedBatch {
  messages: number;
  threads: number;
  /** Id of the last message read; null if there was none. */
  last: string | null;
}

/** Messages per transaction. A batch locks its threads for a few tens of milliseconds. */
export const BATCH_SIZE = 200;
/** A longer thread is refreshed once, with its last expired message; until then only its count is decremented. */
const LONG_THREAD_MESSAGES = 100;

/**
 * Deletes the next expired messages of an environment in order of their ids, with their recipients, attempts,
 * attachments, search rows and receipts; stored objects are deleted by the storage sweep. Their events lose the content.
 * Empty threads are deleted, the others refreshed. Keeps drafts and messages still being sent.
 *
 * Ids are ordered by time, so a batch is one index range that starts where the previous one ended and never rereads
 * deleted rows. Threads are locked before messages, the lock order used everywhere.
 */
export async function deleteExpiredBatch(
  transaction: Transaction,
  { outbox, events }: { outbox: Pick<Outbox, 'enqueue'>; events: EventRedaction },
  batch: ExpiredBatch,
): Promise<DeletedBatch> {
  const { db } = transaction;
  const until = lowestIdAt('message', batch.cutoff);
  const found = await findNextMessages(db, batch, until);
  const last = found.at(-1)?.id ?? null;
  if (last === null) return { messages: 0, threads: 0, last };
  const threadIds = [...new Set(found.map(({ threadId }) => threadId))];
  await lockThreads(db, threadIds);
  const expired = await lockExpired(db, batch, found);
  await eraseMessageCopies(transaction, events, expired);
  const deleted = await deleteMessages(db, batch, expired);
  stopRecentTracking(transaction, outbox, batch, deleted);
  const threads = await updateThreads(db, deleted, { last, until, cutoff: batch.cutoff });
  return { messages: deleted.length, threads, last };
}

/**
 * Locks the living threads.
 *
 * @throws Error if a merge ended while this call waited: the batch is repeated and finds the messages in their new thread.
 */
async function lockThreads(db: Db, threadIds: readonly string[]): Promise<void> {
  const locked = await db
    .selectFrom('threads')
    .select('merged_into_id as mergedIntoId')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('threads as given')
        .select(({ fn }) => fn.coalesce('given.merged_into_id', 'given.id').as('id'))
        .where('given.id', '=', anyOf(threadIds)),
    )
    .orderBy('id')
    .forUpdate()
    .execute();
  if (locked.some(({ mergedIntoId }) => mergedIntoId !== null))
    throw new Error('A thread of this batch was merged meanwhile.');
}

/** Whether an environment has messages from before the cutoff; some of them may still be in flight. */
export async function hasExpired(db: Db, environmentId: string, cutoff: Date): Promise<boolean> {
  const found = await findNextMessages(db, { environmentId, after: null }, lowestIdAt('message', cutoff), 1);
  return found.length > 0;
}

// A row comparison, so that only the index on both columns provides the order. With an equality on the environment the
// planner may scan the primary key instead, through all other tenants' messages.
function findNextMessages(
  db: Db,
  { environmentId, after }: Pick<ExpiredBatch, 'environmentId' | 'after'>,
  until: string,
  limit = BATCH_SIZE,
): Promise<{ id: string; threadId: string }[]> {
  return db
    .selectFrom('messages')
    .select(['id', 'thread_id as threadId'])
    .where(
      sql<boolean>`(env_id, id) > (${environmentId}, ${after ?? ''}) and (env_id, id) < (${environmentId}, ${until})`,
    )
    .orderBy('env_id')
    .orderBy('id')
    .limit(limit)
    .execute();
}

type DeletedMessage = Pick<Message, 'id' | 'threadId' | 'tracked' | 'status'> & {
  hidden: boolean;
  recent: boolean;
};

/** An id encodes when the message was created, which can be long before it was sent. */
const isExpired = (cutoff: Date) =>
  sql<boolean>`coalesce(messages.received_at, messages.sent_at, messages.created_at) < ${cutoff}`;

function lockExpired(
  db: Db,
  { cutoff }: ExpiredBatch,
  found: { id: string }[],
): Promise<Pick<Message, 'id' | 'draftId'>[]> {
  return db
    .selectFrom('messages')
    .select(['id', 'draft_id as draftId'])
    .where('id', '=', anyOf(found.map(({ id }) => id)))
    .where('status', 'not in', IN_FLIGHT_STATUSES)
    .where(isExpired(cutoff))
    .orderBy('id')
    .forUpdate()
    .execute();
}

async function deleteMessages(
  db: Db,
  { now }: ExpiredBatch,
  expired: { id: string }[],
): Promise<DeletedMessage[]> {
  if (expired.length === 0) return [];
  const trackedSince = new Date(now.getTime() - TRACKING_WINDOW_MS);
  return db
    .with('deleted', (cte) =>
      cte
        .deleteFrom('messages')
        .where('id', '=', anyOf(expired.map(({ id }) => id)))
        .returning([
          'id',
          'thread_id as threadId',
          'tracked',
          'status',
          sql<boolean>`not ${IS_VISIBLE}`.as('hidden'),
          sql<boolean>`coalesce(sent_at > ${trackedSince}, false)`.as('recent'),
        ]),
    )
    .with('receipts', (cte) =>
      cte
        .deleteFrom('inbound_receipts')
        .where('id', 'in', (eb) =>
          eb.selectFrom('deleted').select(sql<string>`'rcp_' || substr(id, 5)`.as('receipt_id')),
        ),
    )
    .selectFrom('deleted')
    .selectAll()
    .execute();
}

/**
 * Signals only recent runs: older tracking runs have completed, and signaling each of them would cost more than the
 * deletion.
 */
function stopRecentTracking(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  { organizationId }: ExpiredBatch,
  deleted: DeletedMessage[],
): void {
  const recent = deleted
    .filter((message) => message.recent)
    .map((message) => ({ ...message, organizationId }));
  stopTracking(transaction, outbox, recent);
}

/**
 * The messages that were not read yet: those with ids after `last` and below `until`. Messages before `cutoff` are
 * expired.
 */
interface RemainingRange {
  last: string;
  until: string;
  cutoff: Date;
}

/** @returns the number of deleted threads. */
async function updateThreads(db: Db, deleted: DeletedMessage[], rest: RemainingRange): Promise<number> {
  const byThread = Map.groupBy(deleted, ({ threadId }) => threadId);
  const ids = [...byThread.keys()];
  if (ids.length === 0) return 0;
  const empty = await deleteEmptyThreads(db, ids);
  for (const { id } of empty) byThread.delete(id);
  await refreshRemainingThreads(db, byThread, rest);
  return empty.length;
}

/** Aliases are deleted with their thread. A thread stays while messages of a merged thread are still being moved to it. */
function deleteEmptyThreads(db: Db, ids: readonly string[]): Promise<{ id: string }[]> {
  return db
    .deleteFrom('threads')
    .where('id', '=', anyOf(ids))
    .where('merged_into_id', 'is', null)
    .where(isEmptyThread)
    .returning('id')
    .execute();
}

/**
 * Refreshing reads all messages of a thread, which is too slow per batch for a very long one. While such a thread has
 * more expired messages, only its count is decremented.
 */
async function refreshRemainingThreads(
  db: Db,
  byThread: Map<string, DeletedMessage[]>,
  rest: RemainingRange,
): Promise<void> {
  const ids = [...byThread.keys()];
  if (ids.length === 0) return;
  const unfinished = await findUnfinishedThreads(db, ids, rest);
  const decremented = unfinished.filter(({ id, lastMessageId }) =>
    byThread.get(id)?.every((message) => message.id !== lastMessageId),
  );
  for (const { id } of decremented) {
    const shown = byThread.get(id)?.filter(({ hidden }) => !hidden).length ?? 0;
    await db
      .updateTable('threads')
      .set((eb) => ({ message_count: eb('message_count', '-', shown) }))
      .where('id', '=', id)
      .execute();
    byThread.delete(id);
  }
  await refreshThreads(db, [...byThread.keys()]);
}

/** The long threads that have more expired messages. */
function findUnfinishedThreads(
  db: Db,
  ids: readonly string[],
  { last, until, cutoff }: RemainingRange,
): Promise<{ id: string; lastMessageId: string | null }[]> {
  return db
    .selectFrom('threads as t')
    .select(['id', 'last_message_id as lastMessageId'])
    .where('id', '=', anyOf(ids))
    .where('message_count', '>', LONG_THREAD_MESSAGES)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('messages')
          .where(
            sql<boolean>`(messages.thread_id, messages.id) > (t.id, ${last}) and (messages.thread_id, messages.id) < (t.id, ${until})`,
          )
          .where('messages.status', 'not in', IN_FLIGHT_STATUSES)
          .where(isExpired(cutoff)),
      ),
    )
    .execute();
}
