import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';

const BATCH_SIZE = 500;

/**
 * Deletes uploads that nothing has used for 24 hours. A trigger lists their bytes for deletion. Returns how many.
 */
export function deleteUnusedUploads(database: Database): Promise<number> {
  // An upload that is being attached is locked, so it is skipped.
  return deleteRows(
    database,
    sql`delete from attachments where id in (
       select id from attachments
       where message_id is null and draft_id is null and created_at < now() - interval '24 hours'
       order by created_at limit ${BATCH_SIZE} for update skip locked)`,
  );
}
