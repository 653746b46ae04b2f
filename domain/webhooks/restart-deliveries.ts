import { sql } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import type { Sql } from '../../platform/database/sql.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { buildDeliveryStart, type DeliveryStartInput } from './delivery-start.ts';

/**
 * Restarts deliveries that have no run: a new episode of the same event, with the full schedule. Pending deliveries stay
 * as they are, so concurrent calls create only one episode.
 *
 * @param selection SQL that selects the ids.
 * @returns how many were restarted.
 */
export async function restartDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  selection: Sql,
): Promise<number> {
  const rows = await transaction.em.execute<DeliveryStartInput[]>(
    sql`update webhook_deliveries d
     set status = 'pending', episode = d.episode + 1, prior_attempts = d.attempts, next_attempt_at = now(),
       completed_at = null, reconciled_at = null, held_for = null
     from events e
     where e.id = d.event_id and d.status <> 'pending' and d.id in (${selection})
     returning d.id, d.episode, d.org_id as "organizationId", d.endpoint_id as "endpointId",
       e.env_id as "environmentId", e.inbox_id as "inboxId", e.id as "eventId", e.type as "eventType"`,
  );
  for (const row of rows) {
    outbox.enqueue(transaction, row.organizationId, { start: buildDeliveryStart(row) });
  }
  return rows.length;
}
