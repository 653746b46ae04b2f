import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { HOUR_MS } from './meter-windows.ts';
import type { MeteredCounter } from './metered-counters.ts';
import type { MeterView } from './read-meters.ts';

/**
 * Starts meters for the subscription's metered prices at the next full hour, so that earlier use is not billed. Ends meters
 * whose price the subscription no longer has.
 */
export async function followMeters(
  db: Db,
  {
    organizationId,
    subscriptionId,
    customerId,
    meters,
    endedAt,
    now,
  }: {
    organizationId: string;
    subscriptionId: string;
    customerId: string;
    meters: readonly MeterView[];
    /** When the subscription ended; null while it has not. */
    endedAt: Date | null;
    now: Date;
  },
): Promise<void> {
  const firstHour = new Date(Math.ceil(now.getTime() / HOUR_MS) * HOUR_MS);
  if (meters.length > 0)
    await db
      .insertInto('billing_meters')
      .values(
        meters.map(({ counter, priceId, meterId, eventName, customerField, valueField }) => ({
          subscription_id: subscriptionId,
          counter,
          org_id: organizationId,
          customer_id: customerId,
          price_id: priceId,
          meter_id: meterId,
          event_name: eventName,
          customer_field: customerField,
          value_field: valueField,
          settled_until: firstHour,
        })),
      )
      .onConflict((conflict) =>
        conflict.columns(['subscription_id', 'counter']).doUpdateSet((eb) => ({
          customer_id: eb.ref('excluded.customer_id'),
          price_id: eb.ref('excluded.price_id'),
          meter_id: eb.ref('excluded.meter_id'),
          event_name: eb.ref('excluded.event_name'),
          customer_field: eb.ref('excluded.customer_field'),
          value_field: eb.ref('excluded.value_field'),
          settled_until: sql<Date>`case when billing_meters.ended_at is null then billing_meters.settled_until
            else greatest(billing_meters.settled_until, excluded.settled_until) end`,
          highest_amount: sql<
            number | null
          >`case when billing_meters.ended_at is null then billing_meters.highest_amount end`,
          ended_at: null,
        })),
      )
      .execute();
  const counters = meters.map(({ counter }) => counter);
  await db
    .updateTable('billing_meters')
    .set({ ended_at: endedAt ?? now })
    .where('subscription_id', '=', subscriptionId)
    .where('ended_at', 'is', null)
    .where('counter', '<>', sql<MeteredCounter>`all(${counters})`)
    .execute();
}
