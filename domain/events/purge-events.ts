import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';
import { lowestIdAt } from '../../platform/ids.ts';

/** Events deleted per statement, with their deliveries and attempts. */
const BATCH_SIZE = 1_000;
/** A sweep ends after this many batches; the next one, a minute later, continues. */
const MAX_BATCHES = 10;
const DAY_MS = 86_400_000;
/** Deliveries held by a usage limit wait at most until the next month, those of a closed organization for 30 days. */
const MAX_HOLD_DAYS = 31;

/**
 * Deletes events older than the retention, with their deliveries in any status: a run that still waits finds no delivery
 * and ends. Returns how many events were deleted.
 */
export async function purgeEvents(database: Database, retentionDays: number): Promise<number> {
  const cutoff = new Date(Date.now() - retentionDays * DAY_MS);
  // An event with a delivery that waits for the next month or a recovery stays longer than the retention.
  const holdCutoff = new Date(cutoff.getTime() - MAX_HOLD_DAYS * DAY_MS);
  let deleted = 0;
  for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
    const count = await deleteRows(
      database,
      sql`delete from events where id in (
         select id from events where id < ${lowestIdAt('event', cutoff)}
           and (id < ${lowestIdAt('event', holdCutoff)} or not exists (
           select from webhook_deliveries d
           where d.event_id = events.id and d.status = 'held' 
             and d.held_for in ('usage_limit', 'suspension', 'organization_deleted', 'switched_off')))
         order by id limit ${BATCH_SIZE})`,
    );
    deleted += count;
    if (count < BATCH_SIZE) break;
  }
  return deleted;
}
