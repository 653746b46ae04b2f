import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { releaseObjectsSql } from '../stored-objects/unclaimed-objects.ts';

/** Long enough to look into what a provider reported, or why a mail did not come a second time. */
const RETENTION_DAYS = 30;
/** Rows a sweep removes at most. */
const BATCH_SIZE = 5_000;

/**
 * Removes receipts that became no message: reports that were folded and mail that had come before, a month ago. Each
 * recipient of each mail sent has such a report. Their bytes go with the next sweep, unless another receipt has them
 * too. A mail's own receipt goes with the mail. Returns how many.
 */
export async function deleteExpiredReceipts(database: Database): Promise<number> {
  return database.systemTransaction(async ({ em }) => {
    const [row] = await em.execute<{ count: number }[]>(
      sql`with gone as (delete from inbound_receipts where id in (
         select id from inbound_receipts
         where (kind = 'report' or duplicate_of is not null) and status = 'processed'
           and processed_at < now() - ${RETENTION_DAYS} * interval '1 day'
         limit ${BATCH_SIZE} for update skip locked) returning raw_key, org_id),
       discarded as (${releaseObjectsSql(sql`select distinct on (raw_key) raw_key, org_id, now() from gone`)})
       select count(*)::int as count from gone`,
    );
    return row?.count ?? 0;
  });
}
