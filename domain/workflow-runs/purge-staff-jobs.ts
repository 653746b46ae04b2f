import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';
import { lowestIdAt } from '../../platform/ids.ts';

/** What they did stays in the log of the staff. */
const RETENTION_DAYS = 90;
const BATCH_SIZE = 1_000;

/** Deletes old jobs with their lists. Returns how many. */
export function purgeStaffJobs(database: Database): Promise<number> {
  const cutoff = lowestIdAt('staffJob', new Date(Date.now() - RETENTION_DAYS * 86_400_000));
  return deleteRows(
    database,
    sql`delete from staff_jobs where id in (
       select id from staff_jobs where id < ${cutoff} and status <> 'running' order by id limit ${BATCH_SIZE})`,
  );
}
