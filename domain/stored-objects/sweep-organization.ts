import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { Storage } from '../../platform/storage.ts';
import { sweepObjects } from './sweep-objects.ts';

/**
 * Deletes the released objects of a purged organization, together with all others that are due. Takes at most as long as
 * one sweep.
 *
 * @returns whether objects of the organization are left.
 */
export async function sweepOrganizationObjects(
  database: Database,
  storage: Pick<Storage, 'deleteMany'>,
  organizationId: string,
): Promise<'done' | 'more'> {
  // No upload of it is in progress any more, and no download link of it is valid.
  await database.query(sql`
    update unclaimed_objects set due_at = now() where org_id = ${organizationId} and due_at > now()`);
  await sweepObjects(database, storage);
  const left = await database.query<object>(
    sql`select from unclaimed_objects where org_id = ${organizationId} limit 1`,
  );
  return left.length === 0 ? 'done' : 'more';
}
