import type { Database } from '../../platform/database/database.ts';
import { usageCutoff } from '../usage/usage-history.ts';

const BATCH_SIZE = 5_000;

/** Deletes old usage alerts. Returns how many. */
export async function purgeUsageAlerts({ db }: Database, now: Date = new Date()): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('usage_alerts')
    .where((eb) =>
      eb(
        eb.refTuple('org_id', 'counter', 'threshold', 'period_start'),
        'in',
        eb
          .selectFrom('usage_alerts')
          .select(['org_id', 'counter', 'threshold', 'period_start'])
          .where('period_start', '<', usageCutoff(now))
          .limit(BATCH_SIZE)
          .$asTuple('org_id', 'counter', 'threshold', 'period_start'),
      ),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
