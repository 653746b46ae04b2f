import type { Database } from '../../platform/database/database.ts';

/** The longest queryable history (366 days) plus a month. */
const USAGE_RETENTION_DAYS = 400;
/** Rows deleted per table and call; the next sweep continues. */
const BATCH_SIZE = 5_000;

/** Deletes old hourly sums and ledger entries; monthly totals stay. Returns how many rows. */
export async function purgeUsage({ db }: Database, now: Date = new Date()): Promise<number> {
  const cutoff = usageCutoff(now);
  const hours = await db
    .deleteFrom('usage_hours')
    .where((eb) =>
      eb(
        eb.refTuple('org_id', 'counter', 'hour'),
        'in',
        eb
          .selectFrom('usage_hours')
          .select(['org_id', 'counter', 'hour'])
          .where('hour', '<', cutoff)
          .limit(BATCH_SIZE)
          .$asTuple('org_id', 'counter', 'hour'),
      ),
    )
    .executeTakeFirst();
  const events = await db
    .deleteFrom('usage_events')
    .where('id', 'in', db.selectFrom('usage_events').select('id').where('at', '<', cutoff).limit(BATCH_SIZE))
    .executeTakeFirst();
  return Number(hours.numDeletedRows + events.numDeletedRows);
}

/** Older usage history is deleted. */
export function usageCutoff(now: Date): Date {
  return new Date(now.getTime() - USAGE_RETENTION_DAYS * 86_400_000);
}
