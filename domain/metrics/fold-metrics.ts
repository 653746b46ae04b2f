import type { Database } from '../../platform/database/database.ts';
import { COUNT_COLUMNS } from './metric-counts.ts';
import { SUBJECTS_OF_INBOX } from './metric-statement.ts';

/** Deltas folded in one transaction. */
const BATCH = 5_000;
/** A sweep ends after so many; the next one, a minute later, goes on. */
const BATCHES = 20;

const names = COUNT_COLUMNS.join(', ');
const sums = COUNT_COLUMNS.map((name) => `sum(taken.${name})`).join(', ');
const additions = COUNT_COLUMNS.map((name) => `${name} = metric_hours.${name} + excluded.${name}`).join(', ');

// A delta is either still there or in the hours, for every reader: one statement takes it away and adds it. Two that
// run at once take different deltas, and lock the hours in one order.
const FOLD = `with taken as (
    delete from metric_deltas where id in (
      select id from metric_deltas order by id limit ? for update skip locked)
    returning *),
  folded as (
    insert into metric_hours (org_id, env_id, subject, hour, ${names})
    select inboxes.org_id, inboxes.env_id, subject, taken.hour, ${sums}
    from taken join inboxes on inboxes.id = taken.inbox_id
      ${SUBJECTS_OF_INBOX}
    group by inboxes.org_id, inboxes.env_id, subject, taken.hour
    order by inboxes.env_id, subject collate "C", taken.hour
    on conflict (env_id, subject, hour) do update set ${additions})
  select count(*)::int as count from taken`;

/**
 * Adds up what has happened to mail since the last time: for its environment, its inbox and its inbox's domain. May run
 * twice at once, and die anywhere. Returns how many deltas it folded.
 */
export async function foldMetrics(database: Database): Promise<number> {
  let folded = 0;
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const [{ count } = { count: 0 }] = await database.autocommit((em) =>
      em.execute<{ count: number }[]>(FOLD, [BATCH]),
    );
    folded += count;
    if (count < BATCH) break;
  }
  return folded;
}
