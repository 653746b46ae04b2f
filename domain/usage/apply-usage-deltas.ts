import { raw, sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
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
const APPLY_BATCH = sql`with batch as (
    select id from usage_deltas order by id limit ${BATCH_SIZE} for update skip locked),
  taken as (
    delete from usage_deltas d using batch where d.id = batch.id
    returning d.org_id, d.counter, d.at, d.amount),
  own as (
    select t.* from taken t join organizations o on o.id = t.org_id),
  counted as (
    insert into usage_counters as c (org_id, counter, period_start, amount)
    select org_id, counter,
      ${raw(DELTA_PERIOD)} as start, sum(amount)
    from own group by 1, 2, 3 order by 1, 2, 3
    on conflict (org_id, counter, period_start) do update set amount = c.amount + excluded.amount
    returning 1),
  hourly as (
    insert into usage_hours as h (org_id, counter, hour, amount)
    select org_id, counter, ${raw(DELTA_HOUR)} as hour, sum(amount)
    from own where (select count(*) from counted) >= 0 group by 1, 2, 3 order by 1, 2, 3
    on conflict (org_id, counter, hour) do update set amount = h.amount + excluded.amount)
  select count(*)::int as applied from taken`;

/** @returns how many deltas were applied. */
export async function applyUsageDeltas(database: Database): Promise<number> {
  let applied = 0;
  for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
    const [row] = await database.query<{ applied: number }>(APPLY_BATCH);
    applied += row?.applied ?? 0;
    if (!row || row.applied < BATCH_SIZE) break;
  }
  return applied;
}
