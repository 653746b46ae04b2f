import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';

/** The longest queryable history (366 days) plus a month. */
const USAGE_RETENTION_DAYS = 400;
/** Rows deleted per table and call; the next sweep continues. */
const BATCH_SIZE = 5_000;

/** Deletes old hourly sums and ledger entries; monthly totals stay. Returns how many rows. */
export async function purgeUsage(database: Database, now: Date = new Date()): Promise<number> {
  const cutoff = usageCutoff(now);
  const hours = await deleteRows(
    database,
    sql`delete from usage_hours where (org_id, counter, hour) in (
       select org_id, counter, hour from usage_hours where hour < ${cutoff} limit ${BATCH_SIZE})`,
  );
  const events = await deleteRows(
    database,
    sql`delete from usage_events where id in (select id from usage_events where at < ${cutoff} limit ${BATCH_SIZE})`,
  );
  return hours + events;
}

/** Older usage history is deleted. ISO 8601. */
export function usageCutoff(now: Date): string {
  return new Date(now.getTime() - USAGE_RETENTION_DAYS * 86_400_000).toISOString();
}
