import { type Expression, sql } from 'kysely';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { STORAGE_COUNTER, type UsageCounter } from './counters.ts';
import { effectiveLimit } from './effective-limit.ts';
import { usageLimitExceeded } from './limit-errors.ts';
import { selectLimitInputs, toLimitInputs } from './limit-inputs.ts';
import { monthOf, type Period } from './periods.ts';
import { HARD_TIERS } from './tiers.ts';

export interface UsageChange {
  organizationId: string;
  counter: UsageCounter;
  amount: number;
  /** Determines the month that is charged. */
  at: Date;
}

/** Whether a hard limit applies. Only then is the counter's row updated directly, which serializes its writers. */
const IS_ENFORCED = sql<boolean>`case when v.kind is null then o.tier = any(${HARD_TIERS})
  else v.kind = 'hard' end or w.amount is not null`;

/**
 * Writes a change to its counter and hour under a hard limit, else as a delta.
 *
 * @returns `counted`: the counter's row including this change; null if the change was written as a delta. `maxPending`: upper
 * bound of the deltas that are not applied yet. Undefined if the organization does not exist.
 */
const count = compileOnce((db, change: CountedChange) => {
  const { organizationId, counter, resources, at, start } = change;
  const amount = sql<number>`${change.amount}::bigint`;
  return db
    .with('org', () =>
      selectLimitInputs(db, resources)
        .select(['o.id', IS_ENFORCED.as('isEnforced')])
        .where('o.id', '=', organizationId),
    )
    .with('counted', (cte) =>
      cte
        .insertInto('usage_counters')
        .columns(['org_id', 'counter', 'period_start', 'amount'])
        .expression((eb) =>
          eb
            .selectFrom('org')
            .select(['id', eb.val(counter).as('counter')])
            .select([eb.val(start).as('start'), amount.as('amount')])
            .where('isEnforced', '=', true),
        )
        .onConflict((conflict) =>
          conflict
            .columns(['org_id', 'counter', 'period_start'])
            .doUpdateSet((eb) => ({ amount: eb('usage_counters.amount', '+', eb.ref('excluded.amount')) })),
        )
        .returning('usage_counters.amount'),
    )
    .with('hourly', (cte) =>
      cte
        .insertInto('usage_hours')
        .columns(['org_id', 'counter', 'hour', 'amount'])
        .expression((eb) =>
          eb
            .selectFrom('org')
            .crossJoin('counted')
            .select(['org.id', eb.val(counter).as('counter')])
            .select([
              sql<Date>`date_trunc('hour', ${at}::timestamptz, 'UTC')`.as('hour'),
              amount.as('amount'),
            ]),
        )
        .onConflict((conflict) =>
          conflict
            .columns(['org_id', 'counter', 'hour'])
            .doUpdateSet((eb) => ({ amount: eb('usage_hours.amount', '+', eb.ref('excluded.amount')) })),
        ),
    )
    .with('deferred', (cte) =>
      cte
        .insertInto('usage_deltas')
        .columns(['org_id', 'counter', 'at', 'amount'])
        .expression((eb) =>
          eb
            .selectFrom('org')
            .select(['id', eb.val(counter).as('counter'), eb.val(at).as('at'), amount.as('amount')])
            .where('isEnforced', '=', false),
        ),
    )
    .selectFrom('org')
    .leftJoin('counted', (join) => join.onTrue())
    .select(['tier', 'overrideKind', 'overrideAmount', 'customAmount', 'counted.amount as counted'])
    .select(
      sql<number>`case when "isEnforced" then ${selectPending(db, change, sql<number>`greatest(amount, 0)`)} else 0 end`.as(
        'maxPending',
      ),
    )
    .modifyEnd(PREPARED);
});

interface CountedChange extends UsageChange, Period {
  /** The counter alone: a statement that is compiled once binds whole values. */
  resources: readonly UsageCounter[];
}

/**
 * Counts usage without a limit, as a part of another room's statement that writes the counted rows.
 *
 * @param rows selects the organization, the counter, the time and the amount.
 */
export const insertUsageDeltas = (db: Db, rows: Expression<NewUsageDelta>) =>
  db.insertInto('usage_deltas').columns(['org_id', 'counter', 'at', 'amount']).expression(rows);

interface NewUsageDelta {
  org_id: string;
  counter: UsageCounter;
  at: Date;
  amount: number;
}

/** Selects the sum of a month's deltas that are not applied yet. */
function selectPending(
  db: Db,
  { organizationId, counter, start, end }: Pick<UsageChange, 'organizationId' | 'counter'> & Period,
  amount: Expression<number>,
) {
  return db
    .selectFrom('usage_deltas')
    .select(sql<number>`coalesce(sum(${amount}), 0)::bigint`.as('pending'))
    .where('org_id', '=', organizationId)
    .where('counter', '=', counter)
    .where('at', '>=', start)
    .where('at', '<', end);
}

/**
 * Counts a change and enforces a hard limit in one statement. Call it at the end of the transaction: under a hard limit
 * the counter's row stays locked until the commit, so that only one of several concurrent callers gets the last unit.
 * Without a hard limit it inserts a delta and takes no lock.
 *
 * @throws AppError `usage_limit_exceeded`; the caller must roll back.
 */
export async function countWithinLimit(db: Db, change: UsageChange): Promise<void> {
  const { counter, at } = change;
  if (counter === STORAGE_COUNTER) throw new Error('storage_bytes is counted by triggers');
  const [row] = await count(db, { ...change, ...monthOf(at), resources: [counter] });
  if (!row || row.counted === null) return;
  const limit = effectiveLimit(counter, toLimitInputs(row));
  const { enforcedLimit } = limit;
  if (enforcedLimit === null) return;
  // Deltas applied while this statement waited for the row are in both numbers. Refunds among them would be subtracted
  // twice, so `maxPending` ignores refunds; near the limit the exact sum is read again, now that the row is locked.
  if (row.counted + row.maxPending <= enforcedLimit) return;
  const pending = await readPending(db, change);
  if (row.counted + pending > enforcedLimit) throw usageLimitExceeded(counter, limit, at);
}

async function readPending(db: Db, change: UsageChange): Promise<number> {
  const row = await selectPending(
    db,
    { ...change, ...monthOf(change.at) },
    sql.ref('amount'),
  ).executeTakeFirst();
  return row?.pending ?? 0;
}

/** Counts without checking a limit, or refunds (negative amount). Takes no lock. */
export async function recordUsage(
  db: Db,
  { organizationId, counter, amount, at }: UsageChange,
): Promise<void> {
  await db.insertInto('usage_deltas').values({ org_id: organizationId, counter, at, amount }).execute();
}
