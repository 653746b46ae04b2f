import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { Sql } from '../../platform/database/sql.ts';
import { releaseObjectsSql } from '../stored-objects/unclaimed-objects.ts';

/**
 * Deletes receipts of an inbox and registers their objects for deletion, because no message refers to the bytes of a
 * report or a duplicate. Returns the number of deleted receipts.
 */
export async function deleteInboxReceipts(
  database: Database,
  inboxId: string,
  batchSize: number,
): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    deleteReceiptsSql(sql`inbox_id = ${inboxId} limit ${batchSize}`),
  );
  return row?.count ?? 0;
}

/** SQL that deletes the remaining receipts of a purged organization, likewise. */
export const deleteOrganizationReceiptsSql = (organizationId: string): Sql =>
  deleteReceiptsSql(sql`org_id = ${organizationId}`);

const deleteReceiptsSql = (condition: Sql): Sql =>
  sql`with deleted as (delete from inbound_receipts where id in (
       select id from inbound_receipts where ${condition}) returning raw_key, org_id),
     released as (${releaseObjectsSql(sql`select distinct raw_key, org_id, now() from deleted`)})
   select count(*)::int as count from deleted`;
