import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';

/** Deliveries held per transaction. */
const HOLD_BATCH_SIZE = 1_000;

/**
 * Holds the pending deliveries of an endpoint that has just been disabled: at most {@link HOLD_BATCH_SIZE}; the sweep
 * holds the rest. Skips locked rows: their attempt finds the endpoint disabled. A waiting run ends without an attempt the
 * next time it wakes.
 */
export async function holdPendingDeliveries(em: EntityManager, endpointId: string): Promise<void> {
  await em.execute(
    sql`update webhook_deliveries set status = 'held', next_attempt_at = null where id in (
       select id from webhook_deliveries where endpoint_id = ${endpointId} and status = 'pending'
       limit ${HOLD_BATCH_SIZE} for update skip locked)`,
  );
}

/** Sweep: holds deliveries that are still pending for disabled endpoints. @returns how many were held. */
export async function holdDeliveriesOfDisabledEndpoints(database: Database): Promise<number> {
  const held = await database.autocommit((em) =>
    em.execute<{ id: string }[]>(
      sql`update webhook_deliveries set status = 'held', next_attempt_at = null where id in (
         select d.id from webhook_deliveries d
         join webhook_endpoints w on w.id = d.endpoint_id and w.disabled and w.deleted_at is null
         where d.status = 'pending' limit ${10 * HOLD_BATCH_SIZE} for update of d skip locked)
       returning id`,
    ),
  );
  return held.length;
}
