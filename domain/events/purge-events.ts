import type { Database } from '../../platform/database/database.ts';
import { lowestIdAt } from '../../platform/ids.ts';

/** Events removed in one transaction, with their deliveries and attempts. */
const BATCH = 1_000;
/** Deliveries beyond a usage limit wait for a new month. */
const LONGEST_WAIT_DAYS = 31;
/** A sweep ends after so many; the next one, a minute later, goes on. */
const BATCHES = 10;

/**
 * Removes events past their retention, and with them their deliveries, whatever their state: a run that still waits
 * finds nothing and ends. Records of replays go likewise. Returns how many rows of events and jobs.
 */
export async function purgeEvents(database: Database, retentionDays: number): Promise<number> {
  const until = new Date(Date.now() - retentionDays * 86_400_000);
  // What waits for the next month is not dropped on its last day.
  const forgotten = lowestIdAt('event', new Date(until.getTime() - LONGEST_WAIT_DAYS * 86_400_000));
  const kept = {
    webhook_bulk_jobs: '',
    events: `and (id < '${forgotten}' or not exists (
      select from webhook_deliveries d
      where d.event_id = events.id and d.status = 'held' and d.held_for = 'usage_limit'))`,
  };
  const remove = (table: 'events' | 'webhook_bulk_jobs', oldest: string) =>
    database.autocommit(async (em) => {
      const { affectedRows } = await em.execute<{ affectedRows: number }>(
        `delete from ${table} where id in (select id from ${table} where id < ? ${kept[table]} order by id limit ?)`,
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
