import { raw, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import { RECOVERY_DAYS } from '../../workflows/deletions/purge.contract.ts';
import type { DeletionKind } from './deletion.entity.ts';

/** SQL: condition for a deletion that can be recovered. */
export const IS_RECOVERABLE = raw(
  `(status = 'waiting' and due_at > now() or status = 'stopped') and purge_started_at is null`,
);

export interface NewDeletion {
  kind: DeletionKind;
  subjectId: string;
  deletedBy: string;
  accountDeletionId?: string | null;
  deletedAt: Date;
}

export interface CreatedDeletion {
  deletionId: string;
  kind: DeletionKind;
  subjectId: string;
  episode: number;
  dueAt: Date;
}

const DAY_MS = 86_400_000;

/** When what was deleted then can no longer be recovered. */
const recoverableUntil = (deletedAt: Date): Date => new Date(deletedAt.getTime() + RECOVERY_DAYS * DAY_MS);

/** @throws Error of the unique index if the subject has an open deletion. */
export async function createDeletion(
  em: EntityManager,
  { kind, subjectId, deletedBy, accountDeletionId = null, deletedAt }: NewDeletion,
): Promise<CreatedDeletion> {
  const deletionId = newId('deletion');
  const dueAt = recoverableUntil(deletedAt);
  await em.execute(sql`
    insert into deletions (id, kind, subject_id, deleted_by, account_deletion_id, status, episode, deleted_at, due_at)
    values (${deletionId}, ${kind}, ${subjectId}, ${deletedBy}, ${accountDeletionId}, 'waiting', 1, ${deletedAt}, ${dueAt})`);
  return { deletionId, kind, subjectId, episode: 1, dueAt };
}

export interface RecoveredDeletion {
  deletionId: string;
  kind: DeletionKind;
  subjectId: string;
  episode: number;
}

const RETURNED = raw(`id as "deletionId", kind, subject_id as "subjectId", episode`);

/**
 * Ends the deletion of a user or organization as recovered: of a recovery and the beginning of the purge at the same time,
 * or of two recoveries, one succeeds. Returns undefined if nothing can be recovered.
 */
export async function recoverDeletion(
  em: EntityManager,
  subjectId: string,
): Promise<RecoveredDeletion | undefined> {
  const [recovered] = await em.execute<RecoveredDeletion[]>(sql`
    update deletions set status = 'recovered', ended_at = greatest(clock_timestamp(), deleted_at)
    where subject_id = ${subjectId} and ${IS_RECOVERABLE} returning ${RETURNED}`);
  return recovered;
}

/** Ends the deletions of the organizations that were closed with an account. */
export function recoverClosedWith(
  em: EntityManager,
  accountDeletionId: string,
): Promise<RecoveredDeletion[]> {
  return em.execute<RecoveredDeletion[]>(sql`
    update deletions set status = 'recovered', ended_at = greatest(clock_timestamp(), deleted_at)
    where account_deletion_id = ${accountDeletionId} and ${IS_RECOVERABLE} returning ${RETURNED}`);
}
