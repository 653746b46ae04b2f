import { sql } from 'kysely';
import type { Transaction } from '../../platform/database/database.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import type { DeletionStatus } from './deletion.entity.ts';
import { buildPurgeStart } from './purge-start.ts';

export interface ResumedPurge {
  /** For the new run, which continues where the old one ended. */
  start: StartCommand;
  /** Null for an account. */
  organizationId: string | null;
}

/**
 * Resumes the purge of an account or organization that an operator stopped, in the caller's transaction. Also for staff.
 *
 * @returns null unless it was stopped.
 */
export async function resumePurge({ db }: Transaction, deletionId: string): Promise<ResumedPurge | null> {
  const deletion = await db
    .updateTable('deletions')
    .set((eb) => ({
      status: sql<DeletionStatus>`case when purge_started_at is null then 'waiting' else 'purging' end`,
      ended_at: null,
      reconciled_at: null,
      episode: eb('episode', '+', 1),
    }))
    .where('id', '=', deletionId)
    .where('status', '=', 'stopped')
    .returning(['id as deletionId', 'kind', 'subject_id as subjectId', 'episode', 'due_at as dueAt'])
    .executeTakeFirst();
  if (!deletion) return null;
  return {
    start: buildPurgeStart(deletion),
    organizationId: deletion.kind === 'organization' ? deletion.subjectId : null,
  };
}
