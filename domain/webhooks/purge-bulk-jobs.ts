import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';
import { lowestIdAt } from '../../platform/ids.ts';

const BATCH_SIZE = 1_000;

/** Deletes bulk jobs that are older than the retention of events. Returns how many. */
export function purgeBulkJobs(database: Database, retentionDays: number): Promise<number> {
  const cutoff = lowestIdAt('bulkJob', new Date(Date.now() - retentionDays * 86_400_000));
  return deleteRows(
    database,
    sql`delete from webhook_bulk_jobs where id in (
       select id from webhook_bulk_jobs where id < ${cutoff} order by id limit ${BATCH_SIZE})`,
  );
}
