import { sql } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import type { DeletionKind } from './deletion.entity.ts';
import { buildPurgeStart } from './purge-start.ts';

interface ResumedDeletion {
  deletionId: string;
  kind: DeletionKind;
  subjectId: string;
  episode: number;
  dueAt: string;
}

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
export async function resumePurge({ em }: Transaction, deletionId: string): Promise<ResumedPurge | null> {
  const [deletion] = await em.execute<ResumedDeletion[]>(sql`
    update deletions
    set status = case when purge_started_at is null then 'waiting' else 'purging' end, ended_at = null,
      reconciled_at = null, episode = episode + 1
    where id = ${deletionId} and status = 'stopped'
    returning id as "deletionId", kind, subject_id as "subjectId", episode, due_at as "dueAt"`);
  if (!deletion) return null;
  return {
    start: buildPurgeStart({ ...deletion, dueAt: new Date(deletion.dueAt) }),
    organizationId: deletion.kind === 'organization' ? deletion.subjectId : null,
  };
}
