import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { dbOf } from '../../platform/database/bridge.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Sql } from '../../platform/database/sql.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { IS_HELD_BY_SUSPENSION, JOIN_STATUSES, lockSuspensionHolds } from '../events/event-suspension.ts';
import { IS_WITHDRAWN } from './attempt-outcome.ts';
import type { HoldReason } from './delivery.entity.ts';
import { buildDeliveryStart, type DeliveryStartInput } from './delivery-start.ts';

/**
 * `queue`: behind the deliveries that already wait for the endpoint. `start`: immediately. `release`: immediately; a
 * delivery that waited for a failing endpoint, a suspension, a closed organization or staff keeps the attempts of its schedule.
 */
export type RestartMode = 'queue' | 'start' | 'release';

/**
 * Restarts deliveries that have no run: a new episode of the same event, with the full schedule. Pending deliveries stay
 * as they are, so concurrent calls create only one episode, and so do those already waiting in a queue. Those of a suspended
 * owner are held for it, without a run. A deleted message is not announced any more.
 *
 * @param selection SQL that selects the ids.
 * @returns how many were restarted.
 */
export async function restartDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  { selection, mode }: { selection: Sql; mode: RestartMode },
): Promise<number> {
  const { em } = transaction;
  const waits = mode === 'queue' ? sql`w.holding_since is not null` : sql`false`;
  const priorAttempts =
    mode === 'release'
      ? sql`case when d.held_for in ('endpoint_failing', 'organization_deleted', 'suspension', 'switched_off') then d.prior_attempts else d.attempts end`
      : sql`d.attempts`;
  const rows = await em.execute<RestartedRow[]>(
    sql`update webhook_deliveries d
     set status = case when ${IS_HELD_BY_SUSPENSION} or ${waits} then 'held' else 'pending' end,
       held_for = case when ${IS_HELD_BY_SUSPENSION} then 'suspension' when ${waits} then 'endpoint_failing' end,
       next_attempt_at = case when ${IS_HELD_BY_SUSPENSION} or ${waits} then null else now() end,
       episode = d.episode + 1, prior_attempts = ${priorAttempts}, completed_at = null, reconciled_at = null
     from events v ${JOIN_STATUSES}, webhook_endpoints w
     where v.id = d.event_id and w.id = d.endpoint_id and d.status <> 'pending' and not ${IS_WITHDRAWN}
       and not (${waits} and d.status = 'held' and d.held_for is not distinct from 'endpoint_failing')
       and d.id = any(array(${selection}))
     returning ${RESTARTED}`,
  );
  const suspended = rows.filter(({ heldFor }) => heldFor === 'suspension');
  const started = rows.filter(({ heldFor }) => heldFor === null);
  for (const row of [...started, ...(await startReinstated(em, suspended))])
    outbox.enqueue(transaction, row.organizationId, { start: buildDeliveryStart(row) });
  return rows.length;
}

type RestartedRow = DeliveryStartInput & { heldFor: HoldReason | null };

const RESTARTED = sql`d.id, d.held_for as "heldFor", d.episode, d.org_id as "organizationId",
  d.endpoint_id as "endpointId", v.env_id as "environmentId", v.inbox_id as "inboxId", v.id as "eventId", v.type as "eventType"`;

/** Starts those of deliveries just held for a suspension whose suspension has ended: see `confirmSuspension`. */
async function startReinstated(em: EntityManager, held: readonly RestartedRow[]): Promise<RestartedRow[]> {
  if (held.length === 0) return [];
  const organizationIds = [...new Set(held.map(({ organizationId }) => organizationId))].sort();
  for (const organizationId of organizationIds) await lockSuspensionHolds(dbOf(em), organizationId);
  return em.execute<RestartedRow[]>(
    sql`update webhook_deliveries d set status = 'pending', held_for = null, next_attempt_at = now()
     from events v ${JOIN_STATUSES}
     where v.id = d.event_id and d.id in (${held.map(({ id }) => id)}) and not ${IS_HELD_BY_SUSPENSION}
     returning ${RESTARTED}`,
  );
}
