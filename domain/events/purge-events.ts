import type { Database } from '../../platform/database/database.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import { runInBatches } from '../../platform/run-in-batches.ts';

/** Events deleted per statement, with their deliveries and attempts. */
const BATCH_SIZE = 1_000;
/** A sweep ends after this many batches; the next one, a minute later, continues. */
const MAX_BATCHES = 10;
const DAY_MS = 86_400_000;
/** Deliveries held by a usage limit wait at most until the next month, those of a closed organization for 30 days. */
const MAX_HOLD_DAYS = 31;
const HOLDS_OF_OWNERS = ['usage_limit', 'suspension', 'organization_deleted', 'switched_off'] as const;

/**
 * Deletes events older than the retention, with their deliveries in any status: a run that is still waiting finds no
 * delivery and ends. Returns how many events were deleted.
 */
export async function purgeEvents({ db }: Database, retentionDays: number): Promise<number> {
  const cutoff = new Date(Date.now() - retentionDays * DAY_MS);
  // An event whose delivery waits for the next month or for a recovery is kept longer than the retention period.
  const holdCutoff = new Date(cutoff.getTime() - MAX_HOLD_DAYS * DAY_MS);
  const purgeBatch = async () => {
    const expired = db
      .selectFrom('events')
      .select('id')
      .where('id', '<', lowestIdAt('event', cutoff))
      .where((eb) =>
        eb.or([
          eb('id', '<', lowestIdAt('event', holdCutoff)),
          eb.not(
            eb.exists(
              eb
                .selectFrom('webhook_deliveries as d')
                .select('d.id')
                .whereRef('d.event_id', '=', 'events.id')
                .where('d.status', '=', 'held')
                .where('d.held_for', 'in', HOLDS_OF_OWNERS),
            ),
          ),
        ]),
      )
      .orderBy('id')
      .limit(BATCH_SIZE);
    const { numDeletedRows } = await db.deleteFrom('events').where('id', 'in', expired).executeTakeFirst();
    return Number(numDeletedRows);
  };
  return runInBatches(purgeBatch, { size: BATCH_SIZE, maxBatches: MAX_BATCHES });
}
