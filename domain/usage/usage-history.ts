import { sql } from '@mikro-orm/core';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { invalid } from '../../platform/errors.ts';
import { STORAGE_COUNTER, USAGE_COUNTERS, type UsageCounter } from './counters.ts';

/** Usage of one day (UTC); for `storage_bytes` the amount at the end of the day. */
export interface DailyUsage {
  /** For example `2026-11-21`. */
  date: string;
  amounts: Record<UsageCounter, number>;
}

export const MAX_HISTORY_DAYS = 366;
const DAY_MS = 86_400_000;

/**
 * The changes per day since a start (hourly sums plus deltas that are not applied yet), then one row without a date:
 * the current storage. A single statement, so that both reflect the same moment.
 */
const changesSql = (
  organizationId: string,
  since: string,
) => sql`select counter, to_char(day at time zone 'UTC', 'YYYY-MM-DD') as date, amount
  from (
    select counter, date_bin('1 day', hour, 'epoch') as day, sum(amount)::float8 as amount
    from (
      select counter, hour, amount from usage_hours where org_id = ${organizationId} and hour >= ${since}::timestamptz
      union all
      select counter, at, amount from usage_deltas where org_id = ${organizationId} and at >= ${since}::timestamptz) as changes
    group by 1, 2) as days
  union all
  select ${STORAGE_COUNTER}, null,
    (coalesce((select amount from usage_counters where org_id = ${organizationId} and counter = ${STORAGE_COUNTER}), 0)
      + coalesce((select sum(amount) from usage_deltas where org_id = ${organizationId} and counter = ${STORAGE_COUNTER}), 0))::float8`;

interface Change {
  counter: UsageCounter;
  date: string;
  amount: number;
}

/** @throws AppError `validation_error`. */
export async function readUsageHistory(
  reader: RowReader,
  organizationId: string,
  { start, end }: { start: Date; end: Date },
): Promise<DailyUsage[]> {
  const days = listDays(start, end);
  const since = `${days[0]}T00:00:00Z`;
  const rows = await reader.execute<(Omit<Change, 'date'> & { date: string | null })[]>(
    changesSql(organizationId, since),
  );
  const changes = rows.filter((row): row is Change => row.date !== null);
  return sumByDay(days, changes, rows.find(({ date }) => date === null)?.amount ?? 0);
}

/** @throws AppError `validation_error`. */
function listDays(start: Date, end: Date): string[] {
  const count = Math.floor(end.getTime() / DAY_MS) - Math.floor(start.getTime() / DAY_MS) + 1;
  if (count < 1) throw invalid('/query/end', 'is before start', 'Set end to the start or later.');
  if (count > MAX_HISTORY_DAYS)
    throw invalid(
      '/query/end',
      `is more than ${MAX_HISTORY_DAYS} days from start`,
      'Request several shorter ranges.',
    );
  return Array.from({ length: count }, (_, day) => toIsoDate(new Date(start.getTime() + day * DAY_MS)));
}

function toIsoDate(time: Date): string {
  return time.toISOString().slice(0, 10);
}

/** Storage is computed backwards from now by subtracting the changes of later days. */
function sumByDay(days: string[], changes: Change[], currentStorage: number): DailyUsage[] {
  const byDay = Map.groupBy(changes, ({ date }) => date);
  const last = days.at(-1) ?? '';
  let storage = currentStorage;
  for (const { counter, date, amount } of changes)
    if (counter === STORAGE_COUNTER && date > last) storage -= amount;
  return days
    .toReversed()
    .map((date) => {
      const amounts = Object.fromEntries(USAGE_COUNTERS.map((counter) => [counter, 0])) as Record<
        UsageCounter,
        number
      >;
      for (const { counter, amount } of byDay.get(date) ?? []) amounts[counter] = amount;
      const changed = amounts[STORAGE_COUNTER];
      amounts[STORAGE_COUNTER] = storage;
      storage -= changed;
      return { date, amounts };
    })
    .toReversed();
}
