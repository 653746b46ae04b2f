import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { IS_HELD_BY_SUSPENSION, JOIN_STATUSES } from '../events/event-suspension.ts';

/** Deliveries held per transaction. */
const HOLD_BATCH_SIZE = 1_000;

/** Those of a disabled endpoint that do not wait for it to be enabled yet. */
const UNHELD = sql`(d.status = 'pending' or d.status = 'held' and d.held_for = 'endpoint_failing')`;
const HOLD = sql`update webhook_deliveries set status = 'held', held_for = null, next_attempt_at = null`;

/**
 * Holds the waiting deliveries of an endpoint that has just been disabled: at most {@link HOLD_BATCH_SIZE}; the sweep
 * holds the rest. Skips locked rows: their attempt finds the endpoint disabled. A waiting run ends without an attempt the
 * next time it wakes.
 */
export async function holdPendingDeliveries(em: EntityManager, endpointId: string): Promise<void> {
  await em.execute(
    sql`${HOLD} where id = any(array(
       select d.id from webhook_deliveries d where d.endpoint_id = ${endpointId} and ${UNHELD}
       limit ${HOLD_BATCH_SIZE} for update skip locked))`,
  );
}

/** Sweep: holds deliveries that still wait for disabled endpoints. @returns how many were held. */
export async function holdDeliveriesOfDisabledEndpoints(database: Database): Promise<number> {
  const held = await database.autocommit((em) =>
    em.execute<{ id: string }[]>(
      sql`${HOLD} where id = any(array(
         select d.id from webhook_deliveries d
         join webhook_endpoints w on w.id = d.endpoint_id and w.disabled and w.deleted_at is null
         where ${UNHELD} limit ${10 * HOLD_BATCH_SIZE} for update of d skip locked))
       returning id`,
    ),
  );
  return held.length;
}

/**
 * Moves what a failing endpoint's probe cannot attempt to the deliveries that wait for the end of a suspension: at most
 * {@link HOLD_BATCH_SIZE}. The caller has confirmed that a suspension is in force.
 */
export async function holdSuspendedDeliveries(em: EntityManager, endpointId: string): Promise<void> {
  await em.execute(sql`
    update webhook_deliveries set held_for = 'suspension', next_attempt_at = null where id = any(array(
      select d.id from webhook_deliveries d join events v on v.id = d.event_id ${JOIN_STATUSES}
      where d.endpoint_id = ${endpointId} and d.status = 'held' and d.held_for = 'endpoint_failing' and ${IS_HELD_BY_SUSPENSION}
      order by d.id limit ${HOLD_BATCH_SIZE} for update of d skip locked))`);
}
