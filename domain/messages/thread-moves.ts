import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import {
  MOVE_THREAD_MESSAGES,
  moveThreadMessagesWorkflowId,
} from '../../workflows/messages/move-thread-messages.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import { refreshThreads } from './refresh-thread.ts';
import { lockLivingThread, resolveThreadId } from './resolve-thread.ts';
import type { Thread } from './thread.entity.ts';

const BATCH_SIZE = 500;

export type ThreadMoveService = ReturnType<typeof createThreadMoveService>;

export function createThreadMoveService({ database }: { database: Database }) {
  return {
    /**
     * Moves the messages that a merge left in its younger thread to the living one, newest first, then refreshes the
     * summary. Idempotent.
     *
     * @param onProgress called after each batch with the number of messages moved so far.
     * @returns the number of moved messages.
     */
    async move(threadId: string, onProgress: (moved: number) => void): Promise<number> {
      let total = 0;
      for (let moved = BATCH_SIZE; moved === BATCH_SIZE; onProgress(total)) {
        moved = await database.systemTransaction(({ db }) => moveBatch(db, threadId));
        total += moved;
      }
      await markMoved(database.db, threadId);
      return total;
    },
  };
}

async function markMoved(db: Db, threadId: string): Promise<void> {
  await db
    .updateTable('threads')
    .set({ has_unmoved_messages: false, updated_at: sql`now()` })
    .where('id', '=', threadId)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('messages').where('thread_id', '=', threadId))),
    )
    .execute();
}

/** Locks only the living thread: no message joins a merged one. */
async function moveBatch(db: Db, threadId: string): Promise<number> {
  const living = await lockLivingThread(db, await resolveThreadId(db, threadId));
  if (!living || living.id === threadId) return 0;
  const moved = await moveMessages(db, { from: [threadId], to: living.id, limit: BATCH_SIZE });
  if (moved < BATCH_SIZE) await refreshThreads(db, [living.id]);
  return moved;
}

/**
 * Moves the newest messages of threads, and by a trigger their search documents. The caller holds the lock of the living
 * thread, and refreshes its summary. @returns the number of moved messages.
 */
export async function moveMessages(
  db: Db,
  { from, to, limit }: { from: readonly string[]; to: string; limit: number },
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('messages')
    .set({ thread_id: to })
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('messages')
        .select('id')
        .where('thread_id', '=', anyOf(from))
        .orderBy('id', 'desc')
        .limit(limit),
    )
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

type MovedThread = Pick<Thread, 'id' | 'organizationId' | 'environmentId' | 'inboxId'>;

/** Also used by the reconciler when the run is missing. */
export function buildMoveStart(thread: MovedThread): StartCommand {
  return {
    workflowType: MOVE_THREAD_MESSAGES,
    workflowId: moveThreadMessagesWorkflowId(thread.id),
    taskQueue: MAINTENANCE_QUEUE,
    input: { threadId: thread.id },
    priority: { priorityKey: PRIORITY.default, fairnessKey: thread.organizationId },
    searchAttributes: {
      OrgId: thread.organizationId,
      EnvId: thread.environmentId,
      InboxId: thread.inboxId,
      ResourceId: thread.id,
      Stage: 'moving',
    },
    summary: `Move the messages of ${thread.id}`,
  };
}

/** Merged threads with messages left whose workflow run is missing. */
export function overdueThreadMoves({ db }: Database): OverdueSource {
  return {
    name: 'threadMoves',
    async take(limit) {
      const overdue = db
        .selectFrom('threads')
        .select('id')
        .where('has_unmoved_messages', '=', true)
        .where('updated_at', '<', minutesAgo(2));
      const rows = await db
        .updateTable('threads')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning(['id', 'org_id as organizationId', 'env_id as environmentId', 'inbox_id as inboxId'])
        .execute();
      return rows.map((row) => ({ start: buildMoveStart(row), whenStopped: 'restart' as const }));
    },
  };
}
