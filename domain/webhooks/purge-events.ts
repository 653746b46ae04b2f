import type { Database } from '../../platform/database/database.ts';
import { lowestIdAt } from '../../platform/ids.ts';

/** Events removed in one transaction, with their deliveries and attempts. */
const BATCH = 1_000;
/** A sweep ends after so many; the next one, a minute later, goes on. */
const BATCHES = 10;

/**
 * Removes events past their retention, and with them their deliveries, whatever their state: a run that still waits
 * finds nothing and ends. Records of replays go likewise. Returns how many rows of events and jobs.
 */
export async function purgeEvents(database: Database, retentionDays: number): Promise<number> {
  const until = new Date(Date.now() - retentionDays * 86_400_000);
  const remove = (table: 'events' | 'webhook_bulk_jobs', oldest: string) =>
    database.autocommit(async (em) => {
      const { affectedRows } = await em.execute<{ affectedRows: number }>(
        `delete from ${table} where id in (select id from ${table} where id < ? order by id limit ?)`,
        [oldest, BATCH],
        'run',
      );
      return affectedRows;
    });
  let removed = await remove('webhook_bulk_jobs', lowestIdAt('bulkJob', until));
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const some = await remove('events', lowestIdAt('event', until));
    removed += some;
    if (some < BATCH) break;
  }
  return removed;
}
