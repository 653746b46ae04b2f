import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';

const BATCH_SIZE = 500;

/**
 * Deletes uploads that no draft or message has used within 24 hours. A trigger registers their objects for deletion.
 * Returns the number of deleted uploads.
 */
export function deleteUnusedUploads(database: Database): Promise<number> {
  // An upload that is being attached is locked and therefore skipped.
  return deleteRows(
    database,
    sql`delete from attachments where id = any(array(
       select id from attachments
       where message_id is null and draft_id is null and created_at < now() - interval '24 hours'
       order by created_at limit ${BATCH_SIZE} for update skip locked))`,
  );
}
