import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';

/** Deletes messages of an inbox, except those whose outcome at the relay is still open. Returns how many. */
export function deleteInboxMessages(database: Database, inboxId: string, batchSize: number): Promise<number> {
  return deleteRows(
    database,
    `delete from messages where id in (
       select id from messages where inbox_id = ? and status not in ('sending', 'deferred', 'queued') limit ?)`,
    [inboxId, batchSize],
  );
}

/** Deletes threads of an inbox that have no message left. Returns how many. */
export function deleteInboxThreads(database: Database, inboxId: string, batchSize: number): Promise<number> {
  return deleteRows(
    database,
    `delete from threads where id in (
       select id from threads t where inbox_id = ? and not exists (select from messages m where m.thread_id = t.id)
       limit ?)`,
    [inboxId, batchSize],
  );
}

export async function countInboxMessages(database: Database, inboxId: string): Promise<number> {
  const [row] = await database.statement<{ count: number }>(
    sql`select count(*)::int as count from messages where inbox_id = ${inboxId}`,
  );
  return row?.count ?? 0;
}
