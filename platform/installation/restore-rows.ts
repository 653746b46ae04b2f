import { sql } from 'kysely';
import type { Database } from '../database/database.ts';
import { json } from '../database/json.ts';
import { UNFINISHED_RESTORE_SCHEMA } from './pending-restore.ts';
import type { RestoredStorage } from './restore.entity.ts';

export interface PendingRestore {
  id: number;
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

export async function readRecordedRestore({ db }: Pick<Database, 'db'>): Promise<RecordedRestore> {
  const schema = await db
    .selectNoFrom(
      sql<boolean>`exists (select from pg_namespace where nspname = ${UNFINISHED_RESTORE_SCHEMA})`.as(
        'exists',
      ),
    )
    .executeTakeFirst();
  const restore = await db
    .selectFrom('restores')
    .select(['restored_to as restoredTo', 'storage'])
    .where('reconciled_at', 'is', null)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst();
  const storage = restore?.storage ?? null;
  return {
    isUnfinished: schema?.exists === true || storage === 'comparing' || storage === 'copying',
    restoredTo: restore?.restoredTo ?? null,
    storage,
  };
}

/** Marks the database as restored, if it is not marked, and sets the time of the backup. Workers then take no work. */
export async function beginReconciliation(database: Database, restoredTo: Date): Promise<PendingRestore> {
  const marked = await database.systemTransaction(async ({ db }) => {
    const pending = db
      .selectFrom('restores')
      .select('id')
      .where('reconciled_at', 'is', null)
      .orderBy('id')
      .limit(1);
    const updated = await db
      .updateTable('restores')
      .set({ restored_to: restoredTo })
      .where('id', 'in', pending)
      .returning(['id', 'marked_at as markedAt'])
      .executeTakeFirst();
    if (updated) return updated;
    return db
      .insertInto('restores')
      .values({ restored_to: restoredTo, marked_at: sql`now()` })
      .returning(['id', 'marked_at as markedAt'])
      .executeTakeFirst();
  });
  if (!marked) throw new Error('The restore could not be recorded');
  return marked;
}

/** Lets workers take work again. */
export async function endReconciliation(
  { db }: Database,
  id: number,
  counts: Record<string, number>,
): Promise<void> {
  await db
    .updateTable('restores')
    .set({ reconciled_at: sql`now()`, counts: json(counts) })
    .where('id', '=', id)
    .execute();
}

/**
 * When the latest reconciled restore was marked; null if there was none. A run that completed earlier may have changed rows
 * that the backup does not have in that state.
 */
export async function findLastRestore({ db }: Pick<Database, 'db'>): Promise<Date | null> {
  const row = await db
    .selectFrom('restores')
    .select(({ fn }) => fn.max('marked_at').as('markedAt'))
    .where('reconciled_at', 'is not', null)
    .executeTakeFirst();
  return row?.markedAt ?? null;
}
