import { type Expression, sql } from 'kysely';
import { anyLocked, anyOf } from '../../platform/database/any-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { DUE_NOW } from '../../platform/database/database-time.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { PRIORITY } from '../../workflows/task-queues.contract.ts';
import { IS_HELD_BY_SUSPENSION, lockSuspensionHolds } from '../events/event-suspension.ts';
import { buildDeliveryStart, type DeliveryStartInput } from './add-deliveries.ts';
import type { HoldReason } from './delivery.entity.ts';
import { IS_WITHDRAWN } from './delivery-state.ts';

/**
 * `queue`: behind the deliveries that already wait for the endpoint. `start`: immediately. `release`: immediately; a
 * delivery that waited for a failing endpoint, a suspension, a closed organization or staff keeps its place in the schedule.
 */
export type RestartMode = 'queue' | 'start' | 'release';

/**
 * Starts a new run with the full schedule for deliveries that have none. Deliveries that are pending or already queued
 * do not change, so concurrent calls start only one run. A delivery whose owner is suspended is held without a run. A
 * delivery that announces a deleted message is not restarted.
 *
 * @param selection selects the ids.
 * @returns how many were restarted.
 */
export async function restartDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  restart: { selection: Expression<{ id: string }>; mode: RestartMode },
): Promise<number> {
  const { db } = transaction;
  const priority = restart.mode === 'queue' ? PRIORITY.bulk : PRIORITY.default;
  const rows = await restartRows(db, restart);
  const suspended = rows.filter(({ heldFor }) => heldFor === 'suspension');
  const started = rows.filter(({ heldFor }) => heldFor === null);
  for (const row of [...started, ...(await startReinstated(db, suspended))])
    outbox.enqueue(transaction, row.organizationId, { start: buildDeliveryStart(row, priority) });
  return rows.length;
}

type RestartedRow = DeliveryStartInput & { heldFor: HoldReason | null };

const RESTARTED = [
  'd.id',
  'd.held_for as heldFor',
  'd.generation',
  'd.org_id as organizationId',
  'd.endpoint_id as endpointId',
  'v.env_id as environmentId',
  'v.inbox_id as inboxId',
  'v.id as eventId',
  'v.type as eventType',
] as const;

const PRIOR_ATTEMPTS = sql<number>`d.attempts`;
const PRIOR_ATTEMPTS_OF_RELEASED = sql<number>`case
  when d.held_for in ('endpoint_failing', 'organization_deleted', 'suspension', 'switched_off') then d.prior_attempts
  else d.attempts end`;

function restartRows(
  db: Db,
  { selection, mode }: { selection: Expression<{ id: string }>; mode: RestartMode },
): Promise<RestartedRow[]> {
  const waits = mode === 'queue' ? sql<boolean>`w.holding_since is not null` : sql<boolean>`false`;
  return db
    .updateTable('webhook_deliveries as d')
    .from('webhook_endpoints as w')
    .from('events as v')
    .innerJoin('organizations as o', 'o.id', 'v.org_id')
    .innerJoin('environments as n', 'n.id', 'v.env_id')
    .leftJoin('inboxes as i', 'i.id', 'v.inbox_id')
    .set((eb) => ({
      status: sql`case when ${IS_HELD_BY_SUSPENSION} or ${waits} then 'held' else 'pending' end`,
      held_for: sql`case when ${IS_HELD_BY_SUSPENSION} then 'suspension' when ${waits} then 'endpoint_failing' end`,
      next_attempt_at: sql`case when ${IS_HELD_BY_SUSPENSION} or ${waits} then null else ${DUE_NOW} end`,
      generation: eb('d.generation', '+', 1),
      prior_attempts: mode === 'release' ? PRIOR_ATTEMPTS_OF_RELEASED : PRIOR_ATTEMPTS,
      completed_at: null,
      reconciled_at: null,
    }))
    .whereRef('v.id', '=', 'd.event_id')
    .whereRef('w.id', '=', 'd.endpoint_id')
    .where('d.status', '<>', 'pending')
    .where(sql<boolean>`not ${IS_WITHDRAWN}`)
    .where(
      sql<boolean>`not (${waits} and d.status = 'held' and d.held_for is not distinct from 'endpoint_failing')`,
    )
    .where('d.id', '=', anyLocked(selection))
    .returning(RESTARTED)
    .execute();
}

/** Starts deliveries whose suspension has ended after they were held; see `confirmSuspension`. */
async function startReinstated(db: Db, held: readonly RestartedRow[]): Promise<RestartedRow[]> {
  if (held.length === 0) return [];
  const organizationIds = [...new Set(held.map(({ organizationId }) => organizationId))].sort();
  for (const organizationId of organizationIds) await lockSuspensionHolds(db, organizationId);
  return db
    .updateTable('webhook_deliveries as d')
    .from('events as v')
    .innerJoin('organizations as o', 'o.id', 'v.org_id')
    .innerJoin('environments as n', 'n.id', 'v.env_id')
    .leftJoin('inboxes as i', 'i.id', 'v.inbox_id')
    .set({ status: 'pending', held_for: null, next_attempt_at: DUE_NOW })
    .whereRef('v.id', '=', 'd.event_id')
    .where('d.id', '=', anyOf(held.map(({ id }) => id)))
    .where(sql<boolean>`not ${IS_HELD_BY_SUSPENSION}`)
    .returning(RESTARTED)
    .execute();
}
