import type { EntityManager } from '@mikro-orm/postgresql';
import { invalid } from '../../platform/errors.ts';
import { LEVEL_COUNTER, USAGE_COUNTERS, type UsageCounter } from './counters.ts';

/** What was counted on a day (UTC); of `storage_bytes` what there was at its end. */
export interface DayOfUsage {
  /** As `2026-11-21`. */
  date: string;
  amounts: Record<UsageCounter, number>;
}

export const MAX_HISTORY_DAYS = 366;
const DAY_MS = 86_400_000;

/**
 * What changed since `start`, by day (whole hours, and what is not folded into them yet), and behind it, without a day,
 * the level of now: in one statement, so that both are of the same moment.
 */
const CHANGES = `select counter, to_char(day at time zone 'UTC', 'YYYY-MM-DD') as date, amount
  from (
    select counter, date_bin('1 day', hour, 'epoch') as day, sum(amount)::float8 as amount
    from (
      select counter, hour, amount from usage_hours where org_id = ? and hour >= ?::timestamptz
      union all
      select counter, at, amount from usage_deltas where org_id = ? and at >= ?::timestamptz) as changes
    group by 1, 2) as days
  union all
  select '${LEVEL_COUNTER}', null,
    (coalesce((select amount from usage_counters where org_id = ? and counter = '${LEVEL_COUNTER}'), 0)
      + coalesce((select sum(amount) from usage_deltas where org_id = ? and counter = '${LEVEL_COUNTER}'), 0))::float8`;

interface Change {
  counter: UsageCounter;
  date: string;
  amount: number;
}

/** @throws AppError `validation_error`. */
export async function readHistory(
  em: EntityManager,
  organizationId: string,
  { start, end }: { start: Date; end: Date },
): Promise<DayOfUsage[]> {
  const days = daysOf(start, end);
  const since = `${days[0]}T00:00:00Z`;
  const rows = await em.execute<(Omit<Change, 'date'> & { date: string | null })[]>(CHANGES, [
    organizationId,
    since,
    organizationId,
    since,
    organizationId,
    organizationId,
  ]);
  const changes = rows.filter((row): row is Change => row.date !== null);
  return fold(days, changes, rows.find(({ date }) => date === null)?.amount ?? 0);
}

/** @throws AppError `validation_error`. */
function daysOf(start: Date, end: Date): string[] {
  const count = Math.floor(end.getTime() / DAY_MS) - Math.floor(start.getTime() / DAY_MS) + 1;
  if (count < 1) throw invalid('/query/end', 'is before start', 'Give an end that is not before its start.');
  if (count > MAX_HISTORY_DAYS)
    throw invalid(
      '/query/end',
      `is more than ${MAX_HISTORY_DAYS} days from start`,
      'Ask for shorter ranges, one after another.',
    );
  return Array.from({ length: count }, (_, day) => dateOf(new Date(start.getTime() + day * DAY_MS)));
}

function dateOf(time: Date): string {
  return time.toISOString().slice(0, 10);
}

/** A level is followed back from now: what changed after a day is taken off again. */
function fold(days: string[], changes: Change[], levelNow: number): DayOfUsage[] {
  const byDay = Map.groupBy(changes, ({ date }) => date);
  const last = days.at(-1) ?? '';
  let level = levelNow;
  for (const { counter, date, amount } of changes)
    if (counter === LEVEL_COUNTER && date > last) level -= amount;
  return days
    .toReversed()
    .map((date) => {
      const amounts = Object.fromEntries(USAGE_COUNTERS.map((counter) => [counter, 0])) as Record<
        UsageCounter,
        number
      >;
      for (const { counter, amount } of byDay.get(date) ?? []) amounts[counter] = amount;
      const changed = amounts[LEVEL_COUNTER];
      amounts[LEVEL_COUNTER] = level;
      level -= changed;
      return { date, amounts };
    })
    .toReversed();
}
