import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';

/** Deletes drafts of an inbox. Returns the number of deleted drafts. */
export function deleteInboxDrafts(database: Database, inboxId: string, batchSize: number): Promise<number> {
  return deleteRows(
    database,
    sql`delete from drafts where id in (select id from drafts where inbox_id = ${inboxId} limit ${batchSize})`,
  );
}
