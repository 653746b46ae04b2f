import { sql } from '@mikro-orm/core';
import type { Logger } from 'pino';
import type Stripe from 'stripe';
import type { Database } from '../../platform/database/database.ts';
import type { SerializedRow } from '../../platform/database/serialized-row.ts';
import { AppError } from '../../platform/errors.ts';
import { callStripe, isMissing } from '../../platform/stripe/stripe-client.ts';
import { MAX_AGE_MS } from './meter-settlement.service.ts';
import { HOUR_MS } from './meter-windows.ts';

export interface ReportCounts {
  reported: number;
  refused: number;
}

export interface MeterReportingService {
  /**
   * Sends what is settled to Stripe, each hour once. A crash or an outage in between repeats nothing: the identifier of a
   * report is the same, and if it was first sent long ago, Stripe is asked whether it has it.
   *
   * @throws AppError `unavailable`; what was not sent is sent by the next call.
   */
  report(onProgress: () => void): Promise<ReportCounts>;
}

/** Stripe refuses a second event with an identifier for 24 hours at least. */
const IDENTIFIER_LIFETIME_MS = 23 * HOUR_MS;
const BATCH_SIZE = 100;
const MAX_CONCURRENT_REPORTS = 8;

export interface MeterReportContent {
  id: string;
  windowStart: Date;
  units: number;
  customerId: string;
  meterId: string;
  eventName: string;
  customerField: string;
  valueField: string;
}

interface PendingReport extends MeterReportContent {
  organizationId: string;
  sentAt: Date | null;
}

interface Reporting {
  database: Database;
  stripe: Stripe;
  logger: Pick<Logger, 'error'>;
  now?: () => Date;
}

export function createMeterReportingService(options: Reporting): MeterReportingService {
  const { database } = options;
  return {
    async report(onProgress) {
      const counts = { reported: 0, refused: 0 };
      const failures: unknown[] = [];
      for (let last: PendingReport | undefined; ; ) {
        const batch = await readPending(database, last);
        for (let first = 0; first < batch.length; first += MAX_CONCURRENT_REPORTS) {
          onProgress();
          const outcomes = await Promise.allSettled(
            batch.slice(first, first + MAX_CONCURRENT_REPORTS).map((report) => send(options, report)),
          );
          for (const outcome of outcomes)
            if (outcome.status === 'fulfilled') counts[outcome.value] += 1;
            else failures.push(outcome.reason);
          // Stripe is down. A report that fails alone holds up no other.
          if (outcomes.every(({ status }) => status === 'rejected')) throw failures[0];
        }
        last = batch.at(-1);
        if (batch.length < BATCH_SIZE) break;
      }
      if (failures.length > 0) throw failures[0];
      return counts;
    },
  };
}

/** The oldest first. */
async function readPending(
  database: Database,
  after: Pick<PendingReport, 'id' | 'windowStart'> | undefined,
): Promise<PendingReport[]> {
  const rest = after
    ? sql`and (r.window_start, r.id) > (${after.windowStart.toISOString()}::timestamptz, ${after.id})`
    : sql``;
  const rows = await database.query<SerializedRow<PendingReport>>(sql`
    select r.id, r.org_id as "organizationId", r.window_start as "windowStart", r.units::float8 as units,
      r.sent_at as "sentAt", m.customer_id as "customerId", m.meter_id as "meterId", m.event_name as "eventName",
      m.customer_field as "customerField", m.value_field as "valueField"
    from meter_reports r join billing_meters m on m.subscription_id = r.subscription_id and m.counter = r.counter
    where r.reported_at is null and r.refused_at is null ${rest} order by r.window_start, r.id limit ${BATCH_SIZE}`);
  return rows.map((row) => ({
    ...row,
    windowStart: new Date(row.windowStart),
    sentAt: row.sentAt === null ? null : new Date(row.sentAt),
  }));
}

async function send(
  { database, stripe, logger, now = () => new Date() }: Reporting,
  report: PendingReport,
): Promise<keyof ReportCounts> {
  const time = now();
  const refuse = async (refusal: string) => {
    logger.error(
      { organizationId: report.organizationId, report: report.id, refusal },
      'usage is not billed',
    );
    await database.query(sql`
      update meter_reports set refused_at = ${time}, refusal = ${refusal} where id = ${report.id} returning id`);
    return 'refused' as const;
  };
  if (time.getTime() - report.windowStart.getTime() > MAX_AGE_MS) return refuse('It is older than 34 days.');
  await database.query(sql`
    update meter_reports set sent_at = coalesce(sent_at, ${time}) where id = ${report.id} returning id`);
  const isForgotten = report.sentAt && time.getTime() - report.sentAt.getTime() > IDENTIFIER_LIFETIME_MS;
  try {
    if (!(isForgotten && (await hasReport(stripe, report)))) await sendReport(stripe, report);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    if (!isDuplicate(error)) return refuse(error.message);
  }
  await database.query(
    sql`update meter_reports set reported_at = ${time} where id = ${report.id} returning id`,
  );
  return 'reported';
}

export function sendReport(stripe: Stripe, report: MeterReportContent): Promise<unknown> {
  const { id, eventName, customerField, customerId, valueField, units, windowStart } = report;
  return callStripe(() =>
    stripe.billing.meterEvents.create(
      {
        event_name: eventName,
        identifier: id,
        timestamp: windowStart.getTime() / 1_000,
        payload: { [customerField]: customerId, [valueField]: String(units) },
      },
      { idempotencyKey: `meter/${id}` },
    ),
  );
}

/** Whether Stripe counts the hour already. Only these reports count in it. */
export async function hasReport(
  stripe: Stripe,
  { meterId, customerId, windowStart, units }: MeterReportContent,
): Promise<boolean> {
  const start = windowStart.getTime() / 1_000;
  const { data } = await callStripe(() =>
    stripe.billing.meters.listEventSummaries(meterId, {
      customer: customerId,
      start_time: start,
      end_time: start + HOUR_MS / 1_000,
    }),
  );
  return data.reduce((sum, { aggregated_value: value }) => sum + value, 0) >= units;
}

const isRefusal = (error: unknown): error is Error =>
  isMissing(error) || (error instanceof AppError && error.code === 'unprocessable');

/** Another attempt has sent it. */
function isDuplicate(error: Error): boolean {
  const { code } = (error.cause ?? error) as { code?: unknown };
  return code === 'duplicate_meter_event' || /already exists/i.test(error.message);
}
