import type { Database } from '../../platform/database/database.ts';

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
      case when counter = 'storage_bytes' then 'epoch' else date_trunc('month', at, 'UTC') end as start, sum(amount)
    from own group by 1, 2, 3 order by 1, 2, 3
    on conflict (org_id, counter, period_start) do update set amount = c.amount + excluded.amount
    returning 1),
  hourly as (
    insert into usage_hours as h (org_id, counter, hour, amount)
    select org_id, counter, date_trunc('hour', at, 'UTC') as hour, sum(amount)
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
