import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import { DUE_NOW } from '../../platform/database/database-time.ts';
import type { Storage } from '../../platform/storage.ts';
import { sweepObjects } from './sweep-objects.ts';

type ObjectStorage = Pick<Storage, 'deleteMany'>;

/**
 * Deletes the released objects of a purged organization. Takes at most as long as one sweep.
 *
 * @returns whether objects of the organization are left.
 */
export async function sweepOrganizationObjects(
  database: Database,
  storage: ObjectStorage,
  organizationId: string,
): Promise<'done' | 'more'> {
  // A purged organization has no upload in progress and no valid download link.
  await database.db
    .updateTable('unclaimed_objects')
    .set({ due_at: DUE_NOW })
    .where('org_id', '=', organizationId)
    .where('due_at', '>', sql<Date>`now()`)
    .execute();
  return sweepDueObjects(database, storage, { organizationId, dueBefore: null });
}

/**
 * Deletes the due objects of an organization. Takes at most as long as one sweep. Objects of uploads in progress are
 * not due.
 *
 * @param of.dueBefore a time in PostgreSQL's text format. Objects that become due later do not count as `more`; with
 * null, all objects count.
 */
export async function sweepDueObjects(
  database: Database,
  storage: ObjectStorage,
  { organizationId, dueBefore }: { organizationId: string; dueBefore: string | null },
): Promise<'done' | 'more'> {
  await sweepObjects(database, storage, organizationId);
  const left = await database.db
    .selectFrom('unclaimed_objects')
    .select('storage_key')
    .where('org_id', '=', organizationId)
    .$if(dueBefore !== null, (query) => query.where('due_at', '<=', sql<Date>`${dueBefore}::timestamptz`))
    .limit(1)
    .executeTakeFirst();
  return left ? 'more' : 'done';
}
