import { sql } from 'kysely';
import { anyLocked } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { runInBatches } from '../../platform/run-in-batches.ts';
import { STORAGE_COUNTER } from './counters.ts';

/** SQL: the period in `usage_counters`, and the hour in `usage_hours`, that a delta belongs to. */
export const DELTA_PERIOD = `case when counter = '${STORAGE_COUNTER}' then 'epoch' else date_trunc('month', at, 'UTC') end`;
export const DELTA_HOUR = `date_trunc('hour', at, 'UTC')`;

/** Deltas applied in one transaction. */
const BATCH_SIZE = 5_000;
/** Maximum per call; the next call continues. */
const MAX_BATCHES = 20;

/**
 * Moves a batch of deltas into counters and hours. It is one statement, so a crash leaves the deltas in place, and
 * concurrent calls take different rows. Counters are locked before hours, as in `count-usage.ts`. Deltas of deleted
 * organizations are dropped.
 */
async function applyBatch(db: Db): Promise<number> {
  const row = await db
    .with('taken', (cte) =>
      cte
        .deleteFrom('usage_deltas')
        .where(
          'id',
          '=',
          anyLocked(
            db
              .selectFrom('usage_deltas')
              .select('id')
              .orderBy('id')
              .limit(BATCH_SIZE)
              .forUpdate()
              .skipLocked(),
          ),
        )
        .returning(['org_id', 'counter', 'at', 'amount']),
    )
    .with('own', (cte) =>
      cte
        .selectFrom('taken')
        .innerJoin('organizations', 'organizations.id', 'taken.org_id')
        .selectAll('taken')
        // Otherwise one that is deleted after the statement began would fail the foreign keys, and with them the whole batch.
        .forKeyShare('organizations'),
    )
    .with('counted', (cte) =>
      cte
        .insertInto('usage_counters')
        .columns(['org_id', 'counter', 'period_start', 'amount'])
        .expression((eb) =>
          eb
            .selectFrom('own')
            .select([
              'org_id',
              'counter',
              sql.raw<Date>(DELTA_PERIOD).as('start'),
              sql<number>`sum(amount)`.as('amount'),
            ])
            .groupBy(['org_id', 'counter', 'start'])
            .orderBy('org_id')
            .orderBy('counter')
            .orderBy('start'),
        )
        .onConflict((conflict) =>
          conflict
            .columns(['org_id', 'counter', 'period_start'])
            .doUpdateSet((eb) => ({ amount: eb('usage_counters.amount', '+', eb.ref('excluded.amount')) })),
        )
        .returning('org_id'),
    )
    .with('hourly', (cte) =>
      cte
        .insertInto('usage_hours')
        .columns(['org_id', 'counter', 'hour', 'amount'])
        .expression((eb) =>
          eb
            .selectFrom('own')
            .select([
              'org_id',
              'counter',
              sql.raw<Date>(DELTA_HOUR).as('hour'),
              sql<number>`sum(amount)`.as('amount'),
            ])
            .where(eb.selectFrom('counted').select(sql<number>`count(*)`.as('count')), '>=', 0)
            .groupBy(['org_id', 'counter', 'hour'])
            .orderBy('org_id')
            .orderBy('counter')
            .orderBy('hour'),
        )
        .onConflict((conflict) =>
          conflict
            .columns(['org_id', 'counter', 'hour'])
            .doUpdateSet((eb) => ({ amount: eb('usage_hours.amount', '+', eb.ref('excluded.amount')) })),
        ),
    )
    .selectFrom('taken')
    .select(sql<number>`count(*)`.as('applied'))
    .executeTakeFirst();
  return row?.applied ?? 0;
}

/** @returns how many deltas were applied. */
export const applyUsageDeltas = ({ db }: Database): Promise<number> =>
  runInBatches(() => applyBatch(db), { size: BATCH_SIZE, maxBatches: MAX_BATCHES });
