import { sql } from 'kysely';
import { anyLocked } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { IS_HELD_BY_SUSPENSION } from '../events/event-suspension.ts';

/** Deliveries held per transaction. */
const HOLD_BATCH_SIZE = 1_000;

/** SQL: the delivery `d` of a disabled endpoint does not wait for it to be enabled yet. */
const IS_UNHELD = sql<boolean>`(d.status = 'pending' or d.status = 'held' and d.held_for = 'endpoint_failing')`;
const HOLD = { status: 'held', held_for: null, next_attempt_at: null } as const;

/**
 * Holds the waiting deliveries of an endpoint that has just been disabled: at most {@link HOLD_BATCH_SIZE}; the sweep
 * holds the rest. Skips locked rows, because the attempt that locks them finds the endpoint disabled. A waiting run
 * ends without an attempt the next time it wakes.
 */
export async function holdPendingDeliveries(db: Db, endpointId: string): Promise<void> {
  const waiting = db
    .selectFrom('webhook_deliveries as d')
    .select('d.id')
    .where('d.endpoint_id', '=', endpointId)
    .where(IS_UNHELD)
    .limit(HOLD_BATCH_SIZE)
    .forUpdate()
    .skipLocked();
  await db.updateTable('webhook_deliveries').set(HOLD).where('id', '=', anyLocked(waiting)).execute();
}

/** Sweep: holds deliveries that still wait for disabled endpoints. @returns how many were held. */
export async function holdDeliveriesOfDisabledEndpoints({ db }: Database): Promise<number> {
  const waiting = db
    .selectFrom('webhook_deliveries as d')
    .innerJoin('webhook_endpoints as w', 'w.id', 'd.endpoint_id')
    .select('d.id')
    .where('w.disabled', '=', true)
    .where('w.deleted_at', 'is', null)
    .where(IS_UNHELD)
    .limit(10 * HOLD_BATCH_SIZE)
    .forUpdate('d')
    .skipLocked();
  const { numUpdatedRows } = await db
    .updateTable('webhook_deliveries')
    .set(HOLD)
    .where('id', '=', anyLocked(waiting))
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/**
 * Holds deliveries that a failing endpoint's probe cannot attempt until the end of the suspension: at most
 * {@link HOLD_BATCH_SIZE}. The caller has confirmed that a suspension is in force.
 */
export async function holdSuspendedDeliveries(db: Db, endpointId: string): Promise<void> {
  const suspended = db
    .selectFrom('webhook_deliveries as d')
    .innerJoin('events as v', 'v.id', 'd.event_id')
    .innerJoin('organizations as o', 'o.id', 'v.org_id')
    .innerJoin('environments as n', 'n.id', 'v.env_id')
    .leftJoin('inboxes as i', 'i.id', 'v.inbox_id')
    .select('d.id')
    .where('d.endpoint_id', '=', endpointId)
    .where('d.status', '=', 'held')
    .where('d.held_for', '=', 'endpoint_failing')
    .where(IS_HELD_BY_SUSPENSION)
    .orderBy('d.id')
    .limit(HOLD_BATCH_SIZE)
    .forUpdate('d')
    .skipLocked();
  await db
    .updateTable('webhook_deliveries')
    .set({ held_for: 'suspension', next_attempt_at: null })
    .where('id', '=', anyLocked(suspended))
    .execute();
}
