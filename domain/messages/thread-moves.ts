import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import {
  MOVE_THREAD_MESSAGES,
  moveThreadMessagesWorkflowId,
} from '../../workflows/messages/move-thread-messages.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import { refreshThreads } from './refresh-thread.ts';
import { lockLivingThread, resolveThreadId } from './resolve-thread.ts';
import type { Thread } from './thread.entity.ts';

export interface ThreadMoveService {
  /**
   * Moves the messages that a merge left in its younger thread to the living one, newest first, then refreshes the summary.
   * Idempotent.
   *
   * @param onProgress called after each batch with the number of messages moved so far.
   * @returns the number of moved messages.
   */
  move(threadId: string, onProgress: (moved: number) => void): Promise<number>;
}

const BATCH_SIZE = 500;

export function createThreadMoveService({ database }: { database: Database }): ThreadMoveService {
  return {
    async move(threadId, onProgress) {
      let total = 0;
      for (let moved = BATCH_SIZE; moved === BATCH_SIZE; onProgress(total)) {
        moved = await database.systemTransaction(({ em }) => moveBatch(em, threadId));
        total += moved;
      }
      await database.autocommit((em) =>
        em.execute(
          sql`update threads set has_unmoved_messages = false, updated_at = now()
           where id = ${threadId} and not exists (select from messages where thread_id = ${threadId})`,
        ),
      );
      return total;
    },
  };
}

/** Locks only the living thread: no message joins a merged one. */
async function moveBatch(em: EntityManager, threadId: string): Promise<number> {
  const living = await lockLivingThread(em, await resolveThreadId(em, threadId));
  if (!living || living.id === threadId) return 0;
  const moved = await moveMessages(em, { from: [threadId], to: living.id, limit: BATCH_SIZE });
  if (moved < BATCH_SIZE) await refreshThreads(em, [living.id]);
  return moved;
}

/**
 * Moves the newest messages of threads, and by a trigger their search documents. The caller holds the lock of the living
 * thread, and refreshes its summary. @returns the number of moved messages.
 */
export async function moveMessages(
  em: EntityManager,
  { from, to, limit }: { from: readonly string[]; to: string; limit: number },
): Promise<number> {
  const { affectedRows } = await em.execute<{ affectedRows: number }>(
    sql`update messages set thread_id = ${to}
     where id in (select id from messages where thread_id in (${from}) order by id desc limit ${limit})`,
    [],
    'run',
  );
  return affectedRows;
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
export function overdueThreadMoves(database: Database): OverdueSource {
  return {
    name: 'threadMoves',
    async take(limit) {
      const rows = await takeOverdue<MovedThread>(database, {
        table: 'threads',
        overdue: `has_unmoved_messages and updated_at < now() - interval '2 minutes'`,
        columns: 'id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId"',
        limit,
      });
      return rows.map((row) => ({ start: buildMoveStart(row), whenStopped: 'restart' as const }));
    },
  };
}
