import { sql } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import type { Sql } from '../../platform/database/sql.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { DeliveryStatus } from './delivery.entity.ts';
import { buildDeliveryStart, type DeliveryStartInput } from './delivery-start.ts';

/**
 * `queue`: behind the deliveries that already wait for the endpoint. `start`: immediately. `release`: immediately; a
 * delivery that waited for a failing endpoint, a suspension, a closed organization or staff keeps the attempts of its schedule.
 */
export type RestartMode = 'queue' | 'start' | 'release';

/**
 * Restarts deliveries that have no run: a new episode of the same event, with the full schedule. Pending deliveries stay
 * as they are, so concurrent calls create only one episode, and so do those already waiting in a queue.
 *
 * @param selection SQL that selects the ids.
 * @returns how many were restarted.
 */
export async function restartDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  { selection, mode }: { selection: Sql; mode: RestartMode },
): Promise<number> {
  const waits = mode === 'queue' ? sql`w.holding_since is not null` : sql`false`;
  const priorAttempts =
    mode === 'release'
      ? sql`case when d.held_for in ('endpoint_failing', 'organization_deleted', 'suspension', 'switched_off') then d.prior_attempts else d.attempts end`
      : sql`d.attempts`;
  const rows = await transaction.em.execute<(DeliveryStartInput & { status: DeliveryStatus })[]>(
    sql`update webhook_deliveries d
     set status = case when ${waits} then 'held' else 'pending' end,
       held_for = case when ${waits} then 'endpoint_failing' end,
       next_attempt_at = case when ${waits} then null else now() end,
       episode = d.episode + 1, prior_attempts = ${priorAttempts}, completed_at = null, reconciled_at = null
     from events e, webhook_endpoints w
     where e.id = d.event_id and w.id = d.endpoint_id and d.status <> 'pending'
       and not (${waits} and d.status = 'held' and d.held_for is not distinct from 'endpoint_failing')
       and d.id = any(array(${selection}))
     returning d.id, d.status, d.episode, d.org_id as "organizationId", d.endpoint_id as "endpointId",
       e.env_id as "environmentId", e.inbox_id as "inboxId", e.id as "eventId", e.type as "eventType"`,
  );
  for (const row of rows) {
    if (row.status === 'held') continue;
    outbox.enqueue(transaction, row.organizationId, { start: buildDeliveryStart(row) });
  }
  return rows.length;
}
