import { sql } from 'kysely';
import { anyLocked } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import { buildGraceStart, buildGraceWake, buildSyncCommand } from './billing-starts.ts';

/** Subscriptions with a requested read whose run is missing. */
export function overdueReadBacks({ db }: Database): OverdueSource {
  return {
    name: 'subscriptionReadBacks',
    async take(limit) {
      const overdue = db
        .selectFrom('billing_subscriptions')
        .select('id')
        .where('requested_at', '<', minutesAgo(2));
      const rows = await db
        .updateTable('billing_subscriptions')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning(['id', 'org_id as organizationId'])
        .execute();
      return rows.map((row) => {
        const { start, signal } = buildSyncCommand(row);
        return { start, whenRunning: signal, whenStopped: 'restart' as const };
      });
    },
  };
}

/** Graces whose next step is overdue. A run that an operator stopped starts again; to give more time, extend the grace. */
export function overdueGraces({ db }: Database): OverdueSource {
  return {
    name: 'paymentGraces',
    async take(limit) {
      const overdue = db
        .selectFrom('payment_graces')
        .select('id')
        .where('closed_at', 'is', null)
        .where('next_step_at', '<', minutesAgo(10));
      const rows = await db
        .updateTable('payment_graces')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning(['id', 'org_id as organizationId', 'subscription_id as subscriptionId', 'generation'])
        .execute();
      return rows.map((row) => ({
        start: buildGraceStart(row),
        whenRunning: buildGraceWake(row),
        whenStopped: 'restart' as const,
      }));
    },
  };
}

const BATCH_SIZE = 200;

/**
 * Requests a read of every open subscription that was not read for a day, because an outage longer than Stripe's retries may
 * have lost events.
 *
 * @returns the number of requests.
 */
export async function requestStaleReadBacks(
  { database, outbox }: { database: Database; outbox: Outbox },
  onProgress: () => void,
): Promise<number> {
  for (let requested = 0; ; ) {
    const taken = await database.systemTransaction(async (transaction) => {
      const { db } = transaction;
      const stale = db
        .selectFrom('billing_subscriptions')
        .select('id')
        .where('ended_at', 'is', null)
        .where('requested_at', 'is', null)
        .where((eb) =>
          eb.or([eb('synced_at', 'is', null), eb('synced_at', '<', sql<Date>`now() - interval '1 day'`)]),
        )
        .orderBy('synced_at', (order) => order.asc().nullsFirst())
        .limit(BATCH_SIZE)
        .forUpdate()
        .skipLocked();
      const rows = await db
        .updateTable('billing_subscriptions')
        .set({ requested_at: sql`now()` })
        .where('id', '=', anyLocked(stale))
        .returning(['id', 'org_id as organizationId'])
        .execute();
      for (const row of rows) outbox.enqueue(transaction, row.organizationId, buildSyncCommand(row));
      return rows.length;
    });
    requested += taken;
    onProgress();
    if (taken < BATCH_SIZE) return requested;
    await outbox.drain();
  }
}

const DELETED_AT_ONCE = 1_000;

/** Deletes events that Stripe no longer delivers again: it does so for at most 30 days. */
export async function deleteOldStripeEvents({ db }: Database): Promise<number> {
  const old = db
    .selectFrom('stripe_events')
    .select('id')
    .where('received_at', '<', sql<Date>`now() - interval '60 days'`)
    .limit(DELETED_AT_ONCE);
  const deleted = await db.deleteFrom('stripe_events').where('id', 'in', old).executeTakeFirst();
  return Number(deleted.numDeletedRows);
}

/** Deletes old reports, which Stripe's invoices contain. Reports that still wait stay. */
export async function deleteOldMeterReports({ db }: Database): Promise<number> {
  const old = db
    .selectFrom('meter_reports')
    .select('id')
    .where('created_at', '<', sql<Date>`now() - interval '400 days'`)
    .where((eb) => eb.or([eb('reported_at', 'is not', null), eb('refused_at', 'is not', null)]))
    .limit(DELETED_AT_ONCE);
  const deleted = await db.deleteFrom('meter_reports').where('id', 'in', old).executeTakeFirst();
  return Number(deleted.numDeletedRows);
}
