import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { releaseObjectsSql } from '../stored-objects/unclaimed-objects.ts';

/** Long enough to investigate a report or a dropped duplicate. */
const RETENTION_DAYS = 30;
/** Maximum number of rows per sweep. */
const BATCH_SIZE = 5_000;

/**
 * Deletes receipts of applied reports, of duplicates and of discarded messages after 30 days. The next sweep deletes their bytes, unless another
 * receipt refers to them. The receipt of a message is deleted with the message. Returns the number of deleted receipts.
 */
export async function deleteExpiredReceipts(database: Database): Promise<number> {
  return database.systemTransaction(async ({ em }) => {
    const [row] = await em.execute<{ count: number }[]>(
      sql`with deleted as (delete from inbound_receipts where id = any(array(
         select id from inbound_receipts
         where (kind = 'report' or duplicate_of is not null or status = 'discarded') and status <> 'received'
           and processed_at < now() - ${RETENTION_DAYS} * interval '1 day'
         limit ${BATCH_SIZE} for update skip locked)) returning raw_key, org_id),
       released as (${releaseObjectsSql(sql`select distinct on (raw_key) raw_key, org_id, now() from deleted`)})
       select count(*)::int as count from deleted`,
    );
    return row?.count ?? 0;
  });
}
