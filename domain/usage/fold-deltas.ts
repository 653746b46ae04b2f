import type { Database } from '../../platform/database/database.ts';
import { LEVEL_COUNTER } from './counters.ts';

/** SQL: the row of `usage_counters`, and of `usage_hours`, that a delta is folded into. */
export const PERIOD_OF_DELTA = `case when counter = '${LEVEL_COUNTER}' then 'epoch' else date_trunc('month', at, 'UTC') end`;
export const HOUR_OF_DELTA = `date_trunc('hour', at, 'UTC')`;

/** Deltas folded in one transaction. */
const BATCH = 5_000;
/** A call ends after so many; the next one goes on. */
const BATCHES = 20;

/**
 * Adds the deltas to their counters and hours. One statement takes rows out and adds them, so that a crash leaves them
 * where they were; two at once take different rows. Rows are locked in one order, that of all who count: counters
 * before hours. What a deleted organization left is dropped.
 */
const FOLD = `with batch as (
    select id from usage_deltas order by id limit ? for update skip locked),
  taken as (
    delete from usage_deltas d using batch where d.id = batch.id
    returning d.org_id, d.counter, d.at, d.amount),
  own as (
    select t.* from taken t join organizations o on o.id = t.org_id),
  counted as (
    insert into usage_counters as c (org_id, counter, period_start, amount)
    select org_id, counter,
      ${PERIOD_OF_DELTA} as start, sum(amount)
    from own group by 1, 2, 3 order by 1, 2, 3
    on conflict (org_id, counter, period_start) do update set amount = c.amount + excluded.amount
    returning 1),
  hourly as (
    insert into usage_hours as h (org_id, counter, hour, amount)
    select org_id, counter, ${HOUR_OF_DELTA} as hour, sum(amount)
    from own where (select count(*) from counted) >= 0 group by 1, 2, 3 order by 1, 2, 3
    on conflict (org_id, counter, hour) do update set amount = h.amount + excluded.amount)
  select count(*)::int as folded from taken`;

/** @returns how many deltas were folded in. */
export async function foldUsage(database: Database): Promise<number> {
  let folded = 0;
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const [row] = await database.statement<{ folded: number }>(FOLD, [BATCH]);
    folded += row?.folded ?? 0;
    if (!row || row.folded < BATCH) break;
  }
  return folded;
}
