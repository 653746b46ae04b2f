import { type FilterQuery, LockMode, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { findRow, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { type Message, MessageEntity } from './message.entity.ts';
import { type Thread, ThreadEntity } from './thread.entity.ts';

/**
 * Returns the living thread of a thread id, which may be an alias. Returns the id itself if no such thread exists, so that
 * a filter by it finds nothing.
 */
export async function resolveThreadId(reader: RowReader, threadId: string): Promise<string> {
  // A merge usually makes every alias name the living thread, but skips aliases that are locked.
  const [living] = await reader.execute<{ id: string }[]>(
    sql`with recursive chain as (
       select id, merged_into_id from threads where id = ${threadId}
       union all
       select t.id, t.merged_into_id from threads t join chain c on t.id = c.merged_into_id)
     select id from chain where merged_into_id is null`,
  );
  return living?.id ?? threadId;
}

/** Finds the living thread of a thread id, which may be an alias. */
export async function findLivingThread(
  reader: RowReader,
  scope: Scope,
  threadId: string,
): Promise<Row<Thread> | undefined> {
  const find = (id: string) => findRow(reader, ThreadEntity, { where: { id, ...withinScope(scope) } });
  const thread = await find(threadId);
  return thread?.mergedIntoId ? find(await resolveThreadId(reader, threadId)) : thread;
}

/**
 * Locks the living thread of a thread id, which may be an alias or become one while this call waits for the lock.
 *
 * @param within further conditions that the thread must meet.
 */
export async function lockLivingThread(
  em: EntityManager,
  threadId: string,
  within: FilterQuery<Thread> = {},
): Promise<Thread | null> {
  for (let id = threadId; ; ) {
    const thread = await em.findOne(
      ThreadEntity,
      { $and: [{ id }, within] },
      { lockMode: LockMode.PESSIMISTIC_WRITE, refresh: true },
    );
    if (!thread?.mergedIntoId) return thread;
    id = await resolveThreadId(em, id);
  }
}

/**
 * Locks the thread of a message. Code that changes both locks the thread first; after this call no merge can move the
 * message.
 */
export async function lockThreadOfMessage(
  em: EntityManager,
  where: FilterQuery<Message>,
): Promise<Thread | null> {
  const message = await em.findOne(MessageEntity, where, { fields: ['threadId'], disableIdentityMap: true });
  return message && lockLivingThread(em, message.threadId);
}

/** The thread and its aliases. Only an alias whose messages are still being moved has messages. */
export async function findThreadFamily(em: EntityManager, threadId: string): Promise<string[]> {
  const rows = await em.execute<{ id: string }[]>(
    sql`select id from threads where id = ${threadId} or merged_into_id = ${threadId}`,
  );
  return rows.map(({ id }) => id);
}
