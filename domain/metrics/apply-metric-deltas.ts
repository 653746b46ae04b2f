import { raw, sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { COUNT_COLUMNS } from './metric-counts.ts';
import { INBOX_SUBJECTS } from './metric-query.ts';

/** Deltas applied in one transaction. */
const BATCH_SIZE = 5_000;
/** Limits one sweep; the next one, a minute later, continues. */
const MAX_BATCHES = 20;

const names = raw(COUNT_COLUMNS.join(', '));
const sums = raw(COUNT_COLUMNS.map((name) => `sum(taken.${name})`).join(', '));
const additions = raw(
  COUNT_COLUMNS.map((name) => `${name} = metric_hours.${name} + excluded.${name}`).join(', '),
);

// A single statement moves deltas into the hours, so that every reader sees each delta exactly once. Concurrent calls
// take different deltas and lock the hours in the same order.
const APPLY_BATCH = sql`with taken as (
    delete from metric_deltas where id = any(array(
      select id from metric_deltas order by id limit ${BATCH_SIZE} for update skip locked))
    returning *),
  applied as (
    insert into metric_hours (org_id, env_id, subject, hour, ${names})
    select inboxes.org_id, inboxes.env_id, subject, taken.hour, ${sums}
    from taken join inboxes on inboxes.id = taken.inbox_id
      ${raw(INBOX_SUBJECTS)}
    group by inboxes.org_id, inboxes.env_id, subject, taken.hour
    order by inboxes.env_id, subject collate "C", taken.hour
    on conflict (env_id, subject, hour) do update set ${additions})
  select count(*)::int as count from taken`;

/**
 * Adds the pending deltas to the hourly counts of their environment, inbox and domain. Safe to run concurrently and to
 * interrupt at any point. Returns how many deltas were applied.
 */
export async function applyMetricDeltas(database: Database): Promise<number> {
  let applied = 0;
  for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
    const [{ count } = { count: 0 }] = await database.autocommit((em) =>
      em.execute<{ count: number }[]>(APPLY_BATCH),
    );
    applied += count;
    if (count < BATCH_SIZE) break;
  }
  return applied;
}
