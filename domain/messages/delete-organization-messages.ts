import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';

/**
 * Deletes messages of a purged organization in any status, with their receipts. Triggers release their stored objects.
 * Returns the number of deleted messages.
 */
export async function deleteOrganizationMessages(
  database: Database,
  organizationId: string,
  batchSize: number,
): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    sql`with deleted as (delete from messages where id in (
         select id from messages where env_id in (select id from environments where org_id = ${organizationId})
         limit ${batchSize}) returning id),
       receipts as (delete from inbound_receipts where id in (select 'rcp_' || substr(id, 5) from deleted))
     select count(*)::int as count from deleted`,
  );
  return row?.count ?? 0;
}
