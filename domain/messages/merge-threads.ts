import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { anyLocked, anyOf } from '../../platform/database/any-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { refreshThreads } from './refresh-thread.ts';
import { buildMoveStart, moveMessages } from './thread-moves.ts';

/** A larger merge moves the newest messages, and a workflow moves the others. */
export const MAX_MESSAGES_PER_MERGE = 1_000;

/** Merges of an inbox wait for each other. */
export const lockMerges = (db: Db, inboxId: string): Promise<void> => lockKey(db, 'merge-threads', inboxId);

/** A locked thread that a merge may involve. */
export interface MergeableThread {
  id: string;
  createdAt: Date;
  hasRoot: boolean;
}

/**
 * Divides the threads that one message links. A thread with a root is a complete conversation, and a message of a third
 * party cannot make two of them one: if several have a root, only the first is merged with those that lack one.
 *
 * @param threads in order of priority: the message joins the group of the first.
 */
export function planMerge(
  threads: readonly MergeableThread[],
): { targetId: string; sourceIds: string[] } | null {
  const rooted = threads.find(({ hasRoot }) => hasRoot);
  const group = threads.filter((thread) => !thread.hasRoot || thread === rooted);
  const [oldest, ...others] = group.toSorted(
    (a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1),
  );
  return oldest ? { targetId: oldest.id, sourceIds: others.map(({ id }) => id) } : null;
}

/**
 * Moves the messages of the younger threads to the older one, and makes their ids aliases. The older thread keeps the later
 * pause of sending. The caller holds the locks of all these threads.
 */
export async function mergeThreads(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  {
    inbox,
    targetId,
    sourceIds,
  }: {
    inbox: Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>;
    targetId: string;
    sourceIds: readonly string[];
  },
): Promise<void> {
  if (sourceIds.length === 0) return;
  const { db } = transaction;
  await moveMessages(db, { from: sourceIds, to: targetId, limit: MAX_MESSAGES_PER_MERGE });
  await inheritState(db, inbox, { from: sourceIds, to: targetId });
  const merged = await db
    .updateTable('threads as source')
    .set((eb) => ({
      merged_into_id: targetId,
      message_count: 0,
      updated_at: sql`now()`,
      has_unmoved_messages: eb
        .exists(eb.selectFrom('messages').whereRef('messages.thread_id', '=', 'source.id'))
        .$castTo<boolean>(),
    }))
    .where('id', '=', anyOf(sourceIds))
    .returning(['id', 'has_unmoved_messages as hasUnmovedMessages'])
    .execute();
  // A locked alias belongs to a transaction that waits for one of these threads: it stays an alias of an alias.
  await db
    .updateTable('threads')
    .set({ merged_into_id: targetId })
    .where(
      'id',
      '=',
      anyLocked(
        db
          .selectFrom('threads')
          .select('id')
          .where('merged_into_id', '=', anyOf(sourceIds))
          .forUpdate()
          .skipLocked(),
      ),
    )
    .execute();
  await refreshThreads(db, [targetId]);
  const { id: inboxId, organizationId, environmentId } = inbox;
  for (const { id, hasUnmovedMessages } of merged) {
    if (!hasUnmovedMessages) continue;
    const start = buildMoveStart({ id, inboxId, organizationId, environmentId });
    outbox.enqueue(transaction, organizationId, { start });
  }
}

async function inheritState(
  db: Db,
  inbox: Pick<Inbox, 'id' | 'organizationId'>,
  { from, to }: { from: readonly string[]; to: string },
): Promise<void> {
  await db
    // Sends in the thread that remains need the approval that an alarm in one of the others demands.
    .with('alarms', (cte) =>
      cte
        .updateTable('injection_alarms')
        .set({ thread_id: to })
        .where('org_id', '=', inbox.organizationId)
        .where('inbox_id', '=', inbox.id)
        .where('thread_id', '=', anyOf(from))
        // The sweep deletes the others at the same time, in another order.
        .where('ends_at', '>', sql<Date>`now()`),
    )
    .updateTable('threads')
    .from((eb) =>
      eb
        .selectFrom('threads')
        .select(({ fn }) => [
          sql<boolean>`bool_or(has_root)`.as('has_root'),
          fn.max('send_paused_until').as('send_paused_until'),
        ])
        .where('id', '=', anyOf(from))
        .as('sources'),
    )
    .set({
      has_root: sql`threads.has_root or sources.has_root`,
      send_paused_until: sql`greatest(threads.send_paused_until, sources.send_paused_until)`,
      updated_at: sql`now()`,
    })
    .where('threads.id', '=', to)
    .execute();
}
