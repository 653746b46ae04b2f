import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type DeliveryStart, startOfDelivery } from './delivery-start.ts';

/**
 * Starts deliveries again that have no run: the next episode, with the whole schedule, of the same event. One that is
 * pending is on its way and stays as it is, so that two who ask at once make one episode.
 *
 * @param which SQL that selects their ids.
 * @returns how many were started.
 */
export async function startAnew(
  transaction: Transaction,
  outbox: Outbox,
  which: { sql: string; values: unknown[] },
): Promise<number> {
  const rows = await transaction.em.execute<DeliveryStart[]>(
    `update webhook_deliveries d
     set status = 'pending', episode = d.episode + 1, attempts_before = d.attempts, next_attempt_at = now(),
       completed_at = null, checked_at = null, held_for = null
     from events e
     where e.id = d.event_id and d.status <> 'pending' and d.id in (${which.sql})
     returning d.id, d.episode, d.org_id as "organizationId", d.endpoint_id as "endpointId",
       e.env_id as "environmentId", e.inbox_id as "inboxId", e.id as "eventId", e.type as "eventType"`,
    which.values,
  );
  for (const row of rows) {
    outbox.enqueue(transaction, row.organizationId, { start: startOfDelivery(row) });
  }
  return rows.length;
}
