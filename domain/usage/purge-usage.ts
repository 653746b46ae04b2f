import type { Database } from '../../platform/database/database.ts';

/** The longest history that can be asked for, and a month. */
export const USAGE_KEPT_DAYS = 400;
/** Rows removed in one transaction; the next sweep goes on. */
const BATCH = 5_000;

/** Removes hourly sums, entries of the ledger and alerts that are older. Months stay. @returns how many rows went. */
export async function purgeUsage(database: Database, now: Date = new Date()): Promise<number> {
  const until = new Date(now.getTime() - USAGE_KEPT_DAYS * 86_400_000).toISOString();
  const remove = (table: string, key: string, time: string) =>
    database.autocommit(async (em) => {
      const { affectedRows } = await em.execute<{ affectedRows: number }>(
        `delete from ${table} where (${key}) in (select ${key} from ${table} where ${time} < ? limit ?)`,
        [until, BATCH],
        'run',
      );
      return affectedRows;
    });
  return (
    (await remove('usage_hours', 'org_id, counter, hour', 'hour')) +
    (await remove('usage_events', 'id', 'at')) +
    (await remove('usage_alerts', 'org_id, counter, threshold, period_start', 'period_start'))
  );
}
