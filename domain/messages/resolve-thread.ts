import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { columnsWithin, type Place, placeOf, type Scope } from '../identity/scope.ts';
import { type Thread, ThreadEntity } from './thread.entity.ts';

/**
 * Returns the living thread of a thread id, which may be an alias. Returns the id itself if no such thread exists, so that
 * a filter by it finds nothing.
 */
export async function resolveThreadId(db: Db, threadId: string): Promise<string> {
  const [living] = await resolveThreadIds(db, [threadId]);
  return living ?? threadId;
}

/** Returns the living threads of several thread ids. */
async function resolveThreadIds(db: Db, threadIds: readonly string[]): Promise<string[]> {
  // A merge usually makes every alias name the living thread, but skips aliases that are locked.
  const living = await db
    .withRecursive('chain', (cte) =>
      cte
        .selectFrom('threads')
        .select(['id', 'merged_into_id'])
        .where('id', '=', anyOf(threadIds))
        .unionAll(
          cte
            .selectFrom('threads as next')
            .innerJoin('chain', 'chain.merged_into_id', 'next.id')
            .select(['next.id', 'next.merged_into_id']),
        ),
    )
    .selectFrom('chain')
    .select('id')
    .distinct()
    .where('merged_into_id', 'is', null)
    .execute();
  return living.map(({ id }) => id);
}

/** Columns that a thread must have, such as those of `columnsWithin`. */
type ThreadPlace = Partial<ReturnType<typeof columnsWithin>>;

/** Finds the living thread of a thread id, which may be an alias. */
export async function findLivingThread(db: Db, scope: Scope, threadId: string): Promise<Thread | undefined> {
  const place = placeOf(scope);
  const [thread] = await selectThread(db, { id: threadId, ...place });
  if (!thread?.mergedIntoId) return thread;
  const [living] = await selectThread(db, { id: await resolveThreadId(db, threadId), ...place });
  return living;
}

const selectThread = compileOnce((db, values: Place & { id: string }) =>
  db
    .selectFrom('threads')
    .select(columnsOf(ThreadEntity))
    .where('id', '=', values.id)
    .where((eb) => eb.and(columnsWithin(values)))
    .modifyEnd(PREPARED),
);

/**
 * Locks the living thread of a thread id, which may be an alias or become one while this call waits for the lock.
 *
 * @param within where the thread must be.
 */
export async function lockLivingThread(
  db: Db,
  threadId: string,
  within: ThreadPlace = {},
): Promise<Thread | null> {
  for (let id = threadId; ; ) {
    const thread = await db
      .selectFrom('threads')
      .select(columnsOf(ThreadEntity))
      .where('id', '=', id)
      .where((eb) => eb.and(within))
      .forUpdate()
      .executeTakeFirst();
    if (!thread?.mergedIntoId) return thread ?? null;
    id = await resolveThreadId(db, id);
  }
}

/**
 * Locks the living threads of several thread ids, in the order of their ids, so that two calls do not wait for each other.
 * Threads that a merge ended meanwhile are resolved again.
 */
export async function lockLivingThreads(db: Db, threadIds: readonly string[]): Promise<void> {
  for (let ids = [...new Set(threadIds)]; ids.length > 0; ) {
    const threads = await db
      .selectFrom('threads')
      .select(['id', 'merged_into_id as mergedIntoId'])
      .where('id', '=', anyOf(ids))
      .orderBy('id')
      .forUpdate()
      .execute();
    const merged = threads.filter(({ mergedIntoId }) => mergedIntoId !== null);
    if (merged.length === 0) return;
    ids = await resolveThreadIds(
      db,
      merged.map(({ id }) => id),
    );
  }
}

/**
 * Locks the thread of a message. Code that changes both locks the thread first; after this call no merge can move the
 * message.
 */
export async function lockThreadOfMessage(db: Db, scope: Scope, messageId: string): Promise<Thread | null> {
  const message = await db
    .selectFrom('messages')
    .select('thread_id as threadId')
    .where('id', '=', messageId)
    .where((eb) => eb.and(columnsWithin(scope)))
    .executeTakeFirst();
  return message ? lockLivingThread(db, message.threadId) : null;
}

/** The thread and its aliases. Only an alias whose messages are still being moved has messages. */
export async function findThreadFamily(db: Db, threadId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('threads')
    .select('id')
    .where((eb) => eb.or([eb('id', '=', threadId), eb('merged_into_id', '=', threadId)]))
    .execute();
  return rows.map(({ id }) => id);
}
