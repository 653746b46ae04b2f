import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { TRACKING_WINDOW_MS } from '../../workflows/outbound/track-delivery.contract.ts';
import { IN_FLIGHT_STATUSES, stopTracking } from './deletion.service.ts';
import { type ForgetMessages, forgetMessages } from './forget-messages.ts';
import { HIDDEN_LABELS } from './hidden-labels.ts';
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
const MAX_REFRESHED_THREAD_SIZE = 100;

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
  { outbox, events }: { outbox: Pick<Outbox, 'enqueue'>; events: ForgetMessages },
  batch: ExpiredBatch,
): Promise<DeletedBatch> {
  const { em } = transaction;
  const until = lowestIdAt('message', batch.cutoff);
  const found = await findNextMessages(em, batch, until);
  const last = found.at(-1)?.id ?? null;
  if (last === null) return { messages: 0, threads: 0, last };
  const threadIds = [...new Set(found.map(({ threadId }) => threadId))];
  await lockThreads(em, threadIds);
  const expired = await lockExpired(em, batch, found);
  await forgetMessages(transaction, events, expired);
  const deleted = await deleteMessages(em, batch, expired);
  stopRecentTracking(transaction, outbox, batch, deleted);
  const threads = await updateThreads(em, deleted, { last, until, cutoff: batch.cutoff });
  return { messages: deleted.length, threads, last };
}

/**
 * Locks the living threads.
 *
 * @throws Error if a merge ended while this call waited: the batch is repeated and finds the messages in their new thread.
 */
async function lockThreads(em: EntityManager, threadIds: readonly string[]): Promise<void> {
  const locked = await em.execute<{ mergedIntoId: string | null }[]>(
    sql`select merged_into_id as "mergedIntoId" from threads
     where id in (select coalesce(merged_into_id, id) from threads where id in (${threadIds}))
     order by id for update`,
  );
  if (locked.some(({ mergedIntoId }) => mergedIntoId !== null))
    throw new Error('A thread of this batch was merged meanwhile.');
}

/** Whether an environment has messages from before the cutoff; some of them may still be in flight. */
export async function hasExpired(em: EntityManager, environmentId: string, cutoff: Date): Promise<boolean> {
  const found = await findNextMessages(em, { environmentId, after: null }, lowestIdAt('message', cutoff), 1);
  return found.length > 0;
}

// A row comparison, so that only the index on both columns provides the order. With an equality on the environment the
// planner may scan the primary key instead, through all other tenants' messages.
function findNextMessages(
  em: EntityManager,
  { environmentId, after }: Pick<ExpiredBatch, 'environmentId' | 'after'>,
  until: string,
  limit = BATCH_SIZE,
): Promise<{ id: string; threadId: string }[]> {
  return em.execute(sql`select id, thread_id as "threadId" from messages
    where (env_id, id) > (${environmentId}, ${after ?? ''}) and (env_id, id) < (${environmentId}, ${until})
    order by env_id, id limit ${limit}`);
}

type DeletedMessage = Pick<Message, 'id' | 'threadId' | 'tracked' | 'status'> & {
  hidden: boolean;
  recent: boolean;
};

/** SQL. An id encodes when the message was created, which can be long before it was sent. */
const isExpired = (cutoff: Date) => sql`coalesce(received_at, sent_at, created_at) < ${cutoff}`;

function lockExpired(
  em: EntityManager,
  { cutoff }: ExpiredBatch,
  found: { id: string }[],
): Promise<Pick<Message, 'id' | 'draftId'>[]> {
  const ids = found.map(({ id }) => id);
  const statuses = [...IN_FLIGHT_STATUSES];
  return em.execute(
    sql`select id, draft_id as "draftId" from messages
     where id in (${ids}) and status not in (${statuses}) and ${isExpired(cutoff)} order by id for update`,
  );
}

async function deleteMessages(
  em: EntityManager,
  { now }: ExpiredBatch,
  expired: { id: string }[],
): Promise<DeletedMessage[]> {
  if (expired.length === 0) return [];
  const ids = expired.map(({ id }) => id);
  return em.execute(
    sql`with deleted as (
       delete from messages where id in (${ids})
       returning id, thread_id as "threadId", tracked, status, labels && ${`{${HIDDEN_LABELS.join(',')}}`}::text[] as hidden,
         coalesce(sent_at > ${new Date(now.getTime() - TRACKING_WINDOW_MS)}, false) as recent),
     receipts as (delete from inbound_receipts where id in (select 'rcp_' || substr(id, 5) from deleted))
     select * from deleted`,
  );
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
 * The messages that were not read yet: ids after `last` and below `until`, of which those before `cutoff` are expired.
 */
interface RemainingRange {
  last: string;
  until: string;
  cutoff: Date;
}

/** @returns the number of deleted threads. */
async function updateThreads(
  em: EntityManager,
  deleted: DeletedMessage[],
  rest: RemainingRange,
): Promise<number> {
  const byThread = Map.groupBy(deleted, ({ threadId }) => threadId);
  const ids = [...byThread.keys()];
  if (ids.length === 0) return 0;
  const empty = await em.execute<{ id: string }[]>(
    // An alias goes with its thread, and a thread stays while messages of a merged one are still being moved to it.
    sql`delete from threads t where id in (${ids}) and merged_into_id is null
       and not exists (select from messages m where m.thread_id = t.id)
       and not exists (select from threads a join messages m on m.thread_id = a.id where a.merged_into_id = t.id)
     returning id`,
  );
  for (const { id } of empty) byThread.delete(id);
  await refreshRemainingThreads(em, byThread, rest);
  return empty.length;
}

/**
 * Refreshing reads all messages of a thread, which is too slow per batch for a very long one. While such a thread has
 * more expired messages, only its count is decremented.
 */
async function refreshRemainingThreads(
  em: EntityManager,
  byThread: Map<string, DeletedMessage[]>,
  { last, until, cutoff }: RemainingRange,
): Promise<void> {
  const ids = [...byThread.keys()];
  if (ids.length === 0) return;
  const unfinished = await em.execute<{ id: string; lastMessageId: string | null }[]>(
    sql`select id, last_message_id as "lastMessageId" from threads t
     where id in (${ids}) and message_count > ${MAX_REFRESHED_THREAD_SIZE} and exists (
       select from messages m where (m.thread_id, m.id) > (t.id, ${last}) and (m.thread_id, m.id) < (t.id, ${until})
         and status not in (${[...IN_FLIGHT_STATUSES]}) and ${isExpired(cutoff)})`,
  );
  const decremented = unfinished.filter(({ id, lastMessageId }) =>
    byThread.get(id)?.every((message) => message.id !== lastMessageId),
  );
  for (const { id } of decremented) {
    const shown = byThread.get(id)?.filter(({ hidden }) => !hidden).length ?? 0;
    await em.execute(sql`update threads set message_count = message_count - ${shown} where id = ${id}`);
    byThread.delete(id);
  }
  await refreshThreads(em, [...byThread.keys()]);
}
