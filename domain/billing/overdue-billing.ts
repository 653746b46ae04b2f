import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import { buildGraceStart, buildGraceWake, buildSyncCommand, type GraceRef } from './billing-starts.ts';

/** Subscriptions whose events wait for a read-back that no run makes. */
export function overdueReadBacks(database: Database): OverdueSource {
  return {
    name: 'subscriptionReadBacks',
    async take(limit) {
      const rows = await takeOverdue<{ id: string; organizationId: string }>(database, {
        table: 'billing_subscriptions',
        overdue: `requested_at < now() - interval '2 minutes'`,
        columns: 'id, org_id as "organizationId"',
        limit,
      });
      return rows.map((row) => {
        const { start, signal } = buildSyncCommand(row);
        return { start, whenRunning: signal, whenStopped: 'restart' as const };
      });
    },
  };
}

/** Graces whose next step is overdue. A run that an operator stopped starts again: to give more time, extend the grace. */
export function overdueGraces(database: Database): OverdueSource {
  return {
    name: 'paymentGraces',
    async take(limit) {
      const rows = await takeOverdue<GraceRef>(database, {
        table: 'payment_graces',
        overdue: `closed_at is null and next_step_at < now() - interval '10 minutes'`,
        columns: 'id, org_id as "organizationId", subscription_id as "subscriptionId", episode',
        limit,
      });
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
 * Asks for a read-back of every open subscription that none was made of for a day: events may have been lost in an outage
 * that was longer than Stripe's retries.
 *
 * @returns how many.
 */
export async function requestStaleReadBacks(
  { database, outbox }: { database: Database; outbox: Outbox },
  onProgress: () => void,
): Promise<number> {
  for (let requested = 0; ; ) {
    const taken = await database.systemTransaction(async (transaction) => {
      const rows = await transaction.em.execute<{ id: string; organizationId: string }[]>(sql`
        update billing_subscriptions set requested_at = now() where id = any(array(
          select id from billing_subscriptions
          where ended_at is null and requested_at is null and (synced_at is null or synced_at < now() - interval '1 day')
          order by synced_at nulls first limit ${BATCH_SIZE} for update skip locked))
        returning id, org_id as "organizationId"`);
      for (const row of rows) outbox.enqueue(transaction, row.organizationId, buildSyncCommand(row));
      return rows.length;
    });
    requested += taken;
    onProgress();
    if (taken < BATCH_SIZE) return requested;
    await outbox.drain();
  }
}

/** Stripe delivers an event again for at most 30 days. */
export async function deleteOldStripeEvents(database: Database): Promise<number> {
  const rows = await database.query<unknown>(sql`
    delete from stripe_events where id in (
      select id from stripe_events where received_at < now() - interval '60 days' limit 1000) returning 1`);
  return rows.length;
}

/** Stripe's invoices have what was reported. A report that waits stays. */
export async function deleteOldMeterReports(database: Database): Promise<number> {
  const rows = await database.query<unknown>(sql`
    delete from meter_reports where id in (
      select id from meter_reports where created_at < now() - interval '400 days'
        and (reported_at is not null or refused_at is not null) limit 1000) returning 1`);
  return rows.length;
}
