import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { refreshThreads } from './refresh-thread.ts';
import { buildMoveStart, moveMessages } from './thread-moves.ts';

/** A larger merge moves the newest messages, and a workflow moves the others. */
export const MAX_MESSAGES_PER_MERGE = 1_000;

/** Merges of an inbox wait for each other. */
export const lockMerges = (em: EntityManager, inboxId: string): Promise<void> =>
  lockKey(em, 'merge-threads', inboxId);

/** A locked thread that a merge may involve. */
export interface MergeableThread {
  id: string;
  createdAt: string;
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
    (a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt) || (a.id < b.id ? -1 : 1),
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
  const { em } = transaction;
  await moveMessages(em, { from: sourceIds, to: targetId, limit: MAX_MESSAGES_PER_MERGE });
  await em.execute(
    sql`update threads t set has_root = t.has_root or s.has_root, updated_at = now(),
       send_paused_until = greatest(t.send_paused_until, s.send_paused_until)
     from (select bool_or(has_root) as has_root, max(send_paused_until) as send_paused_until
           from threads where id in (${sourceIds})) s
     where t.id = ${targetId}`,
  );
  const merged = await em.execute<{ id: string; hasUnmovedMessages: boolean }[]>(
    sql`update threads s set merged_into_id = ${targetId}, message_count = 0, updated_at = now(),
       has_unmoved_messages = exists (select from messages m where m.thread_id = s.id)
     where id in (${sourceIds}) returning id, has_unmoved_messages as "hasUnmovedMessages"`,
  );
  // A locked alias belongs to a transaction that waits for one of these threads: it stays an alias of an alias.
  await em.execute(
    sql`update threads set merged_into_id = ${targetId}
     where id = any(array(select id from threads where merged_into_id in (${sourceIds}) for update skip locked))`,
  );
  await refreshThreads(em, [targetId]);
  const { id: inboxId, organizationId, environmentId } = inbox;
  for (const { id, hasUnmovedMessages } of merged) {
    if (!hasUnmovedMessages) continue;
    const start = buildMoveStart({ id, inboxId, organizationId, environmentId });
    outbox.enqueue(transaction, organizationId, { start });
  }
}
