import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { RECOVERY_DAYS } from '../../workflows/deletions/purge.contract.ts';
import type { DeletionKind } from './deletion.entity.ts';

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
  generation: number;
  dueAt: Date;
}

const DAY_MS = 86_400_000;

/** The end of the recovery period. */
const recoverableUntil = (deletedAt: Date): Date => new Date(deletedAt.getTime() + RECOVERY_DAYS * DAY_MS);

/** @throws Error of the unique index if the subject has an open deletion. */
export async function createDeletion(
  db: Db,
  { kind, subjectId, deletedBy, accountDeletionId = null, deletedAt }: NewDeletion,
): Promise<CreatedDeletion> {
  const deletionId = newId('deletion');
  const dueAt = recoverableUntil(deletedAt);
  await db
    .insertInto('deletions')
    .values({
      id: deletionId,
      kind,
      subject_id: subjectId,
      deleted_by: deletedBy,
      account_deletion_id: accountDeletionId,
      status: 'waiting',
      generation: 1,
      deleted_at: deletedAt,
      due_at: dueAt,
    })
    .execute();
  return { deletionId, kind, subjectId, generation: 1, dueAt };
}

export interface RecoveredDeletion {
  deletionId: string;
  kind: DeletionKind;
  subjectId: string;
  generation: number;
}

/**
 * Ends the deletion of a user or organization as recovered. Of two concurrent recoveries, or of a recovery and the beginning
 * of a purge, only one succeeds. Returns undefined if nothing can be recovered.
 */
export const recoverDeletion = (db: Db, subjectId: string): Promise<RecoveredDeletion | undefined> =>
  endAsRecovered(db).where('subject_id', '=', subjectId).executeTakeFirst();

/** Ends the deletions of the organizations that were closed with an account. */
export const recoverClosedWith = (db: Db, accountDeletionId: string): Promise<RecoveredDeletion[]> =>
  endAsRecovered(db).where('account_deletion_id', '=', accountDeletionId).execute();

const endAsRecovered = (db: Db) =>
  db
    .updateTable('deletions')
    .set({ status: 'recovered', ended_at: sql`greatest(clock_timestamp(), deleted_at)` })
    .where('purge_started_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb.and([eb('status', '=', 'waiting'), eb('due_at', '>', sql<Date>`now()`)]),
        eb('status', '=', 'stopped'),
      ]),
    )
    .returning(['id as deletionId', 'kind', 'subject_id as subjectId', 'generation']);
