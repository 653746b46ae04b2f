import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { HOUR_MS } from './meter-windows.ts';
import type { MeterView } from './read-meters.ts';

/**
 * Meters what the subscription has metered prices for, from the next full hour on: what was used before it had them is not
 * billed. Ends what it no longer has.
 */
export async function followMeters(
  em: EntityManager,
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
  for (const { counter, priceId, meterId, eventName, customerField, valueField } of meters)
    await em.execute(sql`
      insert into billing_meters as m (subscription_id, counter, org_id, customer_id, price_id, meter_id, event_name,
        customer_field, value_field, settled_until)
      values (${subscriptionId}, ${counter}, ${organizationId}, ${customerId}, ${priceId}, ${meterId}, ${eventName},
        ${customerField}, ${valueField}, ${firstHour})
      on conflict (subscription_id, counter) do update set customer_id = excluded.customer_id,
        price_id = excluded.price_id, meter_id = excluded.meter_id, event_name = excluded.event_name,
        customer_field = excluded.customer_field, value_field = excluded.value_field,
        settled_until = case when m.ended_at is null then m.settled_until else greatest(m.settled_until, excluded.settled_until) end,
        highest_amount = case when m.ended_at is null then m.highest_amount end, ended_at = null`);
  const counters = ['', ...meters.map(({ counter }) => counter)];
  await em.execute(sql`
    update billing_meters set ended_at = ${endedAt ?? now}
    where subscription_id = ${subscriptionId} and ended_at is null and counter not in (${counters})`);
}
