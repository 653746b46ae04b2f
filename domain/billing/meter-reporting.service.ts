import { type SqlBool, sql } from 'kysely';
import type { Logger } from 'pino';
import type Stripe from 'stripe';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { callStripe, isMissing } from '../../platform/stripe/stripe-client.ts';
import { MAX_AGE_MS } from './meter-settlement.service.ts';
import { HOUR_MS } from './meter-windows.ts';

export interface ReportCounts {
  reported: number;
  refused: number;
}

/** Stripe refuses a second event with the same identifier for at least 24 hours. */
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

export type MeterReportingService = ReturnType<typeof createMeterReportingService>;

export function createMeterReportingService(options: Reporting) {
  const { database } = options;
  return {
    /**
     * Sends each settled hour to Stripe once. A crash or outage causes no second report: a report keeps its identifier, and
     * if it was first sent long ago, Stripe is asked whether it has received it.
     *
     * @throws AppError `unavailable`; the next call sends the remaining reports.
     */
    async report(onProgress: () => void): Promise<ReportCounts> {
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
          // If all fail, Stripe is down. A single failure does not delay the other reports.
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
function readPending(
  database: Database,
  after: Pick<PendingReport, 'id' | 'windowStart'> | undefined,
): Promise<PendingReport[]> {
  const pending = database.db
    .selectFrom('meter_reports as r')
    .innerJoin('billing_meters as m', (join) =>
      join.onRef('m.subscription_id', '=', 'r.subscription_id').onRef('m.counter', '=', 'r.counter'),
    )
    .select([
      'r.id',
      'r.org_id as organizationId',
      'r.window_start as windowStart',
      'r.units',
      'r.sent_at as sentAt',
      'm.customer_id as customerId',
      'm.meter_id as meterId',
      'm.event_name as eventName',
      'm.customer_field as customerField',
      'm.value_field as valueField',
    ])
    .where('r.reported_at', 'is', null)
    .where('r.refused_at', 'is', null);
  const rest = after
    ? pending.where(sql<SqlBool>`(r.window_start, r.id) > (${after.windowStart}::timestamptz, ${after.id})`)
    : pending;
  return rest.orderBy('r.window_start').orderBy('r.id').limit(BATCH_SIZE).execute();
}

async function send(
  { database, stripe, logger, now = () => new Date() }: Reporting,
  report: PendingReport,
): Promise<keyof ReportCounts> {
  const time = now();
  const own = database.db.updateTable('meter_reports').where('id', '=', report.id);
  const refuse = async (refusal: string) => {
    logger.error(
      { organizationId: report.organizationId, report: report.id, refusal },
      'usage is not billed',
    );
    await own.set({ refused_at: time, refusal }).execute();
    return 'refused' as const;
  };
  if (time.getTime() - report.windowStart.getTime() > MAX_AGE_MS) return refuse('It is older than 34 days.');
  await own.set({ sent_at: sql`coalesce(sent_at, ${time})` }).execute();
  const isForgotten = report.sentAt && time.getTime() - report.sentAt.getTime() > IDENTIFIER_LIFETIME_MS;
  try {
    if (!(isForgotten && (await hasReport(stripe, report)))) await sendReport(stripe, report);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    if (!isDuplicate(error)) return refuse(error.message);
  }
  await own.set({ reported_at: time }).execute();
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

/** Whether Stripe has already counted the hour. Only these reports add to the hour. */
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

/** Another attempt has already sent the report. */
function isDuplicate(error: Error): boolean {
  const { code } = (error.cause ?? error) as { code?: unknown };
  return code === 'duplicate_meter_event' || /already exists/i.test(error.message);
}
