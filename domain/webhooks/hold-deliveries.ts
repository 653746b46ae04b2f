import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';

/** Deliveries held in one transaction. */
const HOLD_BATCH = 1_000;

/**
 * What an endpoint that was just disabled still has pending is held; at most a thousand, the sweep takes the rest. Rows
 * somebody works on are passed over: their attempt finds the endpoint disabled. A run that waits for one of them ends
 * at its next look, without an attempt.
 */
export async function holdPendingDeliveries(em: EntityManager, endpointId: string): Promise<void> {
  await em.execute(
    `update webhook_deliveries set status = 'held', next_attempt_at = null where id in (
       select id from webhook_deliveries where endpoint_id = ? and status = 'pending'
       limit ? for update skip locked)`,
    [endpointId, HOLD_BATCH],
  );
}

/** What is still pending for disabled endpoints. @returns how many were held. */
export async function holdForgottenDeliveries(database: Database): Promise<number> {
  const held = await database.autocommit((em) =>
    em.execute<{ id: string }[]>(
      `update webhook_deliveries set status = 'held', next_attempt_at = null where id in (
         select d.id from webhook_deliveries d
         join webhook_endpoints w on w.id = d.endpoint_id and w.disabled and w.deleted_at is null
         where d.status = 'pending' limit ? for update of d skip locked)
       returning id`,
      [10 * HOLD_BATCH],
    ),
  );
  return held.length;
}
