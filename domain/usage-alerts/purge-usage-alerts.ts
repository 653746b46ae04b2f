import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';
import { usageCutoff } from '../usage/purge-usage.ts';

const BATCH_SIZE = 5_000;

/** Deletes old usage alerts. Returns how many. */
export function purgeUsageAlerts(database: Database, now: Date = new Date()): Promise<number> {
  return deleteRows(
    database,
    sql`delete from usage_alerts where (org_id, counter, threshold, period_start) in (
       select org_id, counter, threshold, period_start from usage_alerts
       where period_start < ${usageCutoff(now)} limit ${BATCH_SIZE})`,
  );
}
