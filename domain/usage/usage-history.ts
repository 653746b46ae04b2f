import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
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

interface Change {
  counter: UsageCounter;
  date: string;
  amount: number;
}

/** @throws AppError `validation_error`. */
export async function readUsageHistory(
  db: Db,
  organizationId: string,
  { start, end }: { start: Date; end: Date },
): Promise<DailyUsage[]> {
  const days = listDays(start, end);
  const rows = await readChanges(db, organizationId, new Date(`${days[0]}T00:00:00Z`));
  const changes = rows.filter((row): row is Change => row.date !== null);
  return sumByDay(days, changes, rows.find(({ date }) => date === null)?.amount ?? 0);
}

/**
 * The changes per day since a start (hourly sums plus deltas that are not applied yet), then one row without a date:
 * the current storage. A single statement, so that both reflect the same moment.
 */
function readChanges(db: Db, organizationId: string, since: Date) {
  const changes = db
    .selectFrom('usage_hours')
    .select(['counter', 'hour as at', 'amount'])
    .where('org_id', '=', organizationId)
    .where('hour', '>=', since)
    .unionAll(
      db
        .selectFrom('usage_deltas')
        .select(['counter', 'at', 'amount'])
        .where('org_id', '=', organizationId)
        .where('at', '>=', since),
    );
  const storage = db
    .selectFrom('usage_counters')
    .select('amount')
    .where('org_id', '=', organizationId)
    .where('counter', '=', STORAGE_COUNTER)
    .unionAll(
      db
        .selectFrom('usage_deltas')
        .select('amount')
        .where('org_id', '=', organizationId)
        .where('counter', '=', STORAGE_COUNTER),
    );
  return db
    .selectFrom(changes.as('changes'))
    .select([
      'counter',
      sql<string | null>`to_char(date_bin('1 day', at, 'epoch') at time zone 'UTC', 'YYYY-MM-DD')`.as('date'),
      sql<number>`sum(amount)::bigint`.as('amount'),
    ])
    .groupBy(['counter', 'date'])
    .unionAll(
      db
        .selectFrom(storage.as('storage'))
        .select([
          sql<UsageCounter>`${STORAGE_COUNTER}`.as('counter'),
          sql<string | null>`null`.as('date'),
          sql<number>`coalesce(sum(amount), 0)::bigint`.as('amount'),
        ]),
    )
    .execute();
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

/** The longest queryable history (366 days) plus a month. */
const USAGE_RETENTION_DAYS = 400;
/** Rows deleted per table and call; the next sweep continues. */
const BATCH_SIZE = 5_000;

/** Deletes old hourly sums and ledger entries; monthly totals stay. Returns how many rows. */
export async function purgeUsage({ db }: Database, now: Date = new Date()): Promise<number> {
  const cutoff = usageCutoff(now);
  const hours = await db
    .deleteFrom('usage_hours')
    .where((eb) =>
      eb(
        eb.refTuple('org_id', 'counter', 'hour'),
        'in',
        eb
          .selectFrom('usage_hours')
          .select(['org_id', 'counter', 'hour'])
          .where('hour', '<', cutoff)
          .limit(BATCH_SIZE)
          .$asTuple('org_id', 'counter', 'hour'),
      ),
    )
    .executeTakeFirst();
  const events = await db
    .deleteFrom('usage_events')
    .where('id', 'in', db.selectFrom('usage_events').select('id').where('at', '<', cutoff).limit(BATCH_SIZE))
    .executeTakeFirst();
  return Number(hours.numDeletedRows + events.numDeletedRows);
}

/** Usage history before this time is deleted. */
export function usageCutoff(now: Date): Date {
  return new Date(now.getTime() - USAGE_RETENTION_DAYS * 86_400_000);
}
