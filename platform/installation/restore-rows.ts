import { sql } from '@mikro-orm/core';
import type { Database } from '../database/database.ts';
import { UNFINISHED_RESTORE_SCHEMA } from './pending-restore.ts';
import type { RestoredStorage } from './restore.entity.ts';

export interface PendingRestore {
  id: string;
  /** Rows created later were created after the restore. */
  markedAt: Date;
}

/** What `npm run restore` has recorded. */
export interface RecordedRestore {
  /** Its database, or its objects, are not complete. */
  isUnfinished: boolean;
  /** Time of the backup; null if the database was restored by other means. */
  restoredTo: Date | null;
  storage: RestoredStorage | null;
}

export async function readRecordedRestore(database: Pick<Database, 'query'>): Promise<RecordedRestore> {
  const [row] = await database.query<{
    isUnfinished: boolean;
    restoredTo: string | null;
    storage: RestoredStorage | null;
  }>(sql`
    select exists (select from pg_namespace where nspname = ${UNFINISHED_RESTORE_SCHEMA})
        or coalesce(r.storage in ('comparing', 'copying'), false) as "isUnfinished",
      to_char(r.restored_to at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "restoredTo", r.storage
    from (select) one left join restores r on r.reconciled_at is null order by r.id limit 1`);
  return {
    isUnfinished: row?.isUnfinished ?? false,
    restoredTo: row?.restoredTo ? new Date(row.restoredTo) : null,
    storage: row?.storage ?? null,
  };
}

/** Marks the database as restored, if it is not marked, and sets the time of the backup. Workers then take no work. */
export async function beginReconciliation(database: Database, restoredTo: Date): Promise<PendingRestore> {
  const rows = await database.query<{ id: string; markedAt: string }>(sql`
    with pending as (select id from restores where reconciled_at is null order by id limit 1),
      inserted as (
        insert into restores (restored_to, marked_at) select ${restoredTo.toISOString()}::timestamptz, now()
        where not exists (select from pending) returning id, marked_at),
      updated as (
        update restores set restored_to = ${restoredTo.toISOString()}::timestamptz
        where id = (select id from pending) returning id, marked_at)
    select id::text, to_char(marked_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "markedAt"
    from (select * from inserted union all select * from updated) marked`);
  const [row] = rows;
  if (!row) throw new Error('The restore could not be recorded');
  return { id: row.id, markedAt: new Date(row.markedAt) };
}

/** Lets workers take work again. */
export async function endReconciliation(
  database: Database,
  id: string,
  counts: Record<string, number>,
): Promise<void> {
  await database.query(
    sql`update restores set reconciled_at = now(), counts = ${JSON.stringify(counts)}::jsonb where id = ${id}`,
  );
}

/**
 * When the latest reconciled restore was marked; null if there was none. A run that completed earlier may have changed rows
 * that the backup does not have in that state.
 */
export async function findLastRestore(database: Pick<Database, 'query'>): Promise<Date | null> {
  const [row] = await database.query<{ markedAt: string | null }>(
    sql`select to_char(max(marked_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "markedAt"
        from restores where reconciled_at is not null`,
  );
  return row?.markedAt ? new Date(row.markedAt) : null;
}
