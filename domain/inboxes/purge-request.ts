import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';

/** Whether somebody asked to purge the inbox. */
export async function findRequestedPurge(database: Database, inboxId: string): Promise<boolean> {
  const rows = await database.query<{ id: string }>(
    sql`select id from inboxes where id = ${inboxId} and purge_requested_at is not null`,
  );
  return rows.length > 0;
}

/** Records that nothing of the inbox's mail is left. */
export async function markPurged(database: Database, inboxId: string): Promise<void> {
  await database.query(sql`update inboxes set purged_at = now() where id = ${inboxId}`);
}
