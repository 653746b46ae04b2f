import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import { queryRows, type Row } from '../../platform/database/find-rows.ts';
import { joinSql } from '../../platform/database/sql.ts';
import { applyUsageDeltas } from '../usage/apply-usage-deltas.ts';
import { type BillingMeter, BillingMeterEntity } from './billing-meter.entity.ts';
import { readGrantHistories } from './grant-history.ts';
import { HOUR_MS, type SettledHours, settleHours, type UsedHour } from './meter-windows.ts';

export interface MeterSettlementService {
  /**
   * Writes down the use beyond soft limits of every hour that is over, once, for metered subscriptions.
   *
   * @returns how many hours have billable use.
   */
  settle(onProgress: () => void): Promise<number>;
}

/** After this, what was used in an hour is committed. What comes later counts to the next hour. */
const SETTLED_AFTER_MS = 5 * 60_000;
/** Stripe takes use of the last 35 days. */
export const MAX_AGE_MS = 34 * 24 * HOUR_MS;
const BATCH_SIZE = 100;

export function createMeterSettlementService({
  database,
  logger,
  now = () => new Date(),
}: {
  database: Database;
  logger: Pick<Logger, 'error'>;
  now?: () => Date;
}): MeterSettlementService {
  return {
    async settle(onProgress) {
      await applyUsageDeltas(database);
      const time = now();
      const until = new Date(Math.floor((time.getTime() - SETTLED_AFTER_MS) / HOUR_MS) * HOUR_MS);
      const earliest = new Date(Math.ceil((time.getTime() - MAX_AGE_MS) / HOUR_MS) * HOUR_MS);
      for (let billable = 0; ; ) {
        onProgress();
        const batch = await database.systemTransaction(({ em }) => settleBatch(em, { until, earliest }));
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
  /** Meters of which the oldest hours are too old for Stripe. */
  late: Row<BillingMeter>[];
}

async function settleBatch(em: EntityManager, times: { until: Date; earliest: Date }): Promise<Batch> {
  const due = await lockDue(em, times.until);
  if (due.length === 0) return { meters: 0, billable: 0, late: [] };
  const late = due.filter(({ settledUntil }) => settledUntil < times.earliest);
  const meters = due.map((meter) =>
    meter.settledUntil < times.earliest
      ? { ...meter, settledUntil: times.earliest, highestAmount: null }
      : meter,
  );
  const since = new Date(Math.min(...meters.map(({ settledUntil }) => settledUntil.getTime())));
  const organizationIds = [...new Set(meters.map(({ organizationId }) => organizationId))];
  const historyOf = await readGrantHistories(em, organizationIds, since);
  const usage = await readUsage(em, meters, times.until);
  let billable = 0;
  for (const meter of meters) {
    const until = endOf(meter, times.until);
    const { amountBefore, hours } = usage.get(keyOf(meter)) ?? { amountBefore: 0, hours: [] };
    const settled = settleHours(historyOf(meter.organizationId, meter.counter), meter, {
      amountBefore,
      hours: hours.filter(({ start }) => start < until),
      until,
    });
    await save(em, meter, settled);
    billable += settled.billable.length;
  }
  return { meters: due.length, billable, late };
}

/** Meters with hours that are over: until the subscription ended, at most. */
function lockDue(em: EntityManager, until: Date): Promise<Row<BillingMeter>[]> {
  return queryRows(
    em,
    BillingMeterEntity,
    (columns) => sql`
    select ${columns} from billing_meters
    where settled_until < ${until} and (ended_at is null or settled_until + interval '1 hour' <= ended_at)
    order by settled_until limit ${BATCH_SIZE} for update skip locked`,
  );
}

function endOf({ endedAt, settledUntil }: Row<BillingMeter>, until: Date): Date {
  const end = endedAt ? Math.floor(endedAt.getTime() / HOUR_MS) * HOUR_MS : until.getTime();
  return new Date(Math.max(settledUntil.getTime(), Math.min(end, until.getTime())));
}

const keyOf = ({ subscriptionId, counter }: Pick<BillingMeter, 'subscriptionId' | 'counter'>) =>
  `${subscriptionId}/${counter}`;

/** What was used in each hour that is to be settled, and before it in its month. */
async function readUsage(
  em: EntityManager,
  meters: readonly Row<BillingMeter>[],
  until: Date,
): Promise<Map<string, { amountBefore: number; hours: UsedHour[] }>> {
  const spans = meters.map(
    ({ subscriptionId, counter, organizationId, settledUntil }) =>
      sql`(${subscriptionId}, ${counter}, ${organizationId}, ${settledUntil.toISOString()}::timestamptz)`,
  );
  const rows = await em.execute<
    { subscriptionId: string; counter: BillingMeter['counter']; hour: string | null; amount: number }[]
  >(sql`
    select m.subscription_id as "subscriptionId", m.counter, case when h.hour >= m.settled_until then h.hour end as hour,
      sum(h.amount)::float8 as amount
    from (values ${joinSql(spans, ', ')}) as m (subscription_id, counter, org_id, settled_until)
    join usage_hours h on h.org_id = m.org_id and h.counter = m.counter
      and h.hour >= date_trunc('month', m.settled_until, 'UTC') and h.hour < ${until.toISOString()}::timestamptz
    group by 1, 2, 3 order by 1, 2, 3`);
  const usage = new Map<string, { amountBefore: number; hours: UsedHour[] }>();
  for (const { hour, amount, ...row } of rows) {
    const of = usage.get(keyOf(row)) ?? { amountBefore: 0, hours: [] };
    if (hour === null) of.amountBefore = amount;
    else of.hours.push({ start: new Date(hour), amount });
    usage.set(keyOf(row), of);
  }
  return usage;
}

async function save(
  em: EntityManager,
  { subscriptionId, counter, organizationId }: Row<BillingMeter>,
  { settledUntil, highestAmount, billable }: SettledHours,
): Promise<void> {
  if (billable.length > 0) {
    const rows = billable.map(
      ({
        start,
        units,
      }) => sql`(${reportId(organizationId, counter, start)}, ${organizationId}, ${subscriptionId},
        ${counter}, ${start.toISOString()}::timestamptz, ${units}, now())`,
    );
    // Of two metered subscriptions, one reports the hour: Stripe counts an event for every metered price of the customer.
    await em.execute(sql`
      insert into meter_reports (id, org_id, subscription_id, counter, window_start, units, created_at)
      values ${joinSql(rows, ', ')} on conflict (id) do nothing`);
  }
  await em.execute(sql`
    update billing_meters set settled_until = ${settledUntil}, highest_amount = ${highestAmount}
    where subscription_id = ${subscriptionId} and counter = ${counter}`);
}

/** At most 100 characters. */
const reportId = (organizationId: string, counter: string, hour: Date): string =>
  `${organizationId}/${counter}/${hour.toISOString().slice(0, 13)}`;
