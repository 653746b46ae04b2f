import { sql } from 'kysely';
import type { Logger } from 'pino';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { applyUsageDeltas } from '../usage/apply-usage-deltas.ts';
import { readGrantHistories } from './grant-history.ts';
import { BillingMeterEntity } from './meter.entity.ts';
import { HOUR_MS, type SettledHours, settleHours, type UsedHour } from './meter-windows.ts';

type BillingMeter = RowOf<typeof BillingMeterEntity>;

/** An hour is settled this long after its end, when its use is committed. Later changes count toward the next hour. */
const SETTLED_AFTER_MS = 5 * 60_000;
/** Stripe accepts use of the last 35 days. */
export const MAX_AGE_MS = 34 * 24 * HOUR_MS;
const BATCH_SIZE = 100;

export type MeterSettlementService = ReturnType<typeof createMeterSettlementService>;

export function createMeterSettlementService({
  database,
  logger,
  now = () => new Date(),
}: {
  database: Database;
  logger: Pick<Logger, 'error'>;
  now?: () => Date;
}) {
  return {
    /**
     * Records the use beyond soft limits of every past hour once, for metered subscriptions.
     *
     * @returns how many hours have billable use.
     */
    async settle(onProgress: () => void): Promise<number> {
      await applyUsageDeltas(database);
      const time = now();
      const until = new Date(Math.floor((time.getTime() - SETTLED_AFTER_MS) / HOUR_MS) * HOUR_MS);
      const earliest = new Date(Math.ceil((time.getTime() - MAX_AGE_MS) / HOUR_MS) * HOUR_MS);
      for (let billable = 0; ; ) {
        onProgress();
        const batch = await database.systemTransaction(({ db }) => settleBatch(db, { until, earliest }));
        for (const { organizationId, counter, settledUntil } of batch.late)
          logger.error({ organizationId, counter, since: settledUntil }, 'usage is too old to be billed');
        billable += batch.billable;
        if (batch.meters < BATCH_SIZE) return billable;
      }
    },
  };
}

interface Batch {
  meters: number;
  billable: number;
  /** Meters whose oldest hours are too old for Stripe. */
  late: BillingMeter[];
}

async function settleBatch(db: Db, times: { until: Date; earliest: Date }): Promise<Batch> {
  const due = await lockDue(db, times.until);
  if (due.length === 0) return { meters: 0, billable: 0, late: [] };
  const late = due.filter(({ settledUntil }) => settledUntil < times.earliest);
  const meters = due.map((meter) =>
    meter.settledUntil < times.earliest
      ? { ...meter, settledUntil: times.earliest, highestAmount: null }
      : meter,
  );
  const since = new Date(Math.min(...meters.map(({ settledUntil }) => settledUntil.getTime())));
  const organizationIds = [...new Set(meters.map(({ organizationId }) => organizationId))];
  const historyOf = await readGrantHistories(db, organizationIds, since);
  const usage = await readUsage(db, meters, times.until);
  let billable = 0;
  for (const meter of meters) {
    const until = endOf(meter, times.until);
    const { amountBefore, hours } = usage.get(keyOf(meter)) ?? { amountBefore: 0, hours: [] };
    const settled = settleHours(historyOf(meter.organizationId, meter.counter), meter, {
      amountBefore,
      hours: hours.filter(({ start }) => start < until),
      until,
    });
    await save(db, meter, settled);
    billable += settled.billable.length;
  }
  return { meters: due.length, billable, late };
}

/** Locks the meters with past hours that are not settled, up to the end of the subscription. */
function lockDue(db: Db, until: Date): Promise<BillingMeter[]> {
  return db
    .selectFrom('billing_meters')
    .select(columnsOf(BillingMeterEntity))
    .where('settled_until', '<', until)
    .where((eb) =>
      eb.or([
        eb('ended_at', 'is', null),
        eb(sql<Date>`settled_until + interval '1 hour'`, '<=', eb.ref('ended_at')),
      ]),
    )
    .orderBy('settled_until')
    .limit(BATCH_SIZE)
    .forUpdate()
    .skipLocked()
    .execute();
}

function endOf({ endedAt, settledUntil }: BillingMeter, until: Date): Date {
  const end = endedAt ? Math.floor(endedAt.getTime() / HOUR_MS) * HOUR_MS : until.getTime();
  return new Date(Math.max(settledUntil.getTime(), Math.min(end, until.getTime())));
}

const keyOf = ({ subscriptionId, counter }: Pick<BillingMeter, 'subscriptionId' | 'counter'>) =>
  `${subscriptionId}/${counter}`;

/** Reads the use of each hour to be settled, and the earlier use of its month. */
async function readUsage(
  db: Db,
  meters: readonly BillingMeter[],
  until: Date,
): Promise<Map<string, { amountBefore: number; hours: UsedHour[] }>> {
  const list = <Value>(pick: (meter: BillingMeter) => Value) => meters.map(pick);
  const spans = sql<{
    subscription_id: string;
    counter: BillingMeter['counter'];
    org_id: string;
    settled_until: Date;
  }>`unnest(${list((meter) => meter.subscriptionId)}::text[], ${list((meter) => meter.counter)}::text[],
    ${list((meter) => meter.organizationId)}::text[],
    ${list((meter) => meter.settledUntil.toISOString())}::timestamptz[])`;
  const rows = await db
    .selectFrom(spans.as<'m'>(sql`m (subscription_id, counter, org_id, settled_until)`))
    .innerJoin('usage_hours as h', (join) =>
      join.onRef('h.org_id', '=', 'm.org_id').onRef('h.counter', '=', 'm.counter'),
    )
    .select([
      'm.subscription_id as subscriptionId',
      'm.counter',
      sql<Date | null>`case when h.hour >= m.settled_until then h.hour end`.as('hour'),
      sql<number>`sum(h.amount)::float8`.as('amount'),
    ])
    .where('h.hour', '>=', sql<Date>`date_trunc('month', m.settled_until, 'UTC')`)
    .where('h.hour', '<', until)
    .groupBy(sql`1, 2, 3`)
    .orderBy(sql`1, 2, 3`)
    .execute();
  const usage = new Map<string, { amountBefore: number; hours: UsedHour[] }>();
  for (const { hour, amount, ...row } of rows) {
    const of = usage.get(keyOf(row)) ?? { amountBefore: 0, hours: [] };
    if (hour === null) of.amountBefore = amount;
    else of.hours.push({ start: hour, amount });
    usage.set(keyOf(row), of);
  }
  return usage;
}

async function save(
  db: Db,
  { subscriptionId, counter, organizationId }: BillingMeter,
  { settledUntil, highestAmount, billable }: SettledHours,
): Promise<void> {
  // If there are two metered subscriptions, only one reports the hour, because Stripe counts an event for every metered
  // price of the customer.
  if (billable.length > 0)
    await db
      .insertInto('meter_reports')
      .values(
        billable.map(({ start, units }) => ({
          id: reportId(organizationId, counter, start),
          org_id: organizationId,
          subscription_id: subscriptionId,
          counter,
          window_start: start,
          units,
        })),
      )
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
  await db
    .updateTable('billing_meters')
    .set({ settled_until: settledUntil, highest_amount: highestAmount })
    .where('subscription_id', '=', subscriptionId)
    .where('counter', '=', counter)
    .execute();
}

/** At most 100 characters. */
const reportId = (organizationId: string, counter: string, hour: Date): string =>
  `${organizationId}/${counter}/${hour.toISOString().slice(0, 13)}`;
