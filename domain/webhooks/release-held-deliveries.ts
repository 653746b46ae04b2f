import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { startAnew } from './start-anew.ts';

/** Deliveries released in one transaction: their rows stay locked until it commits. */
export const RELEASE_BATCH = 200;

/**
 * Starts anew what waited while the endpoint was disabled, oldest first, at most {@link RELEASE_BATCH}. Nothing is
 * released while the endpoint is disabled or deleted. Two at once never release the same delivery.
 *
 * @returns how many were released.
 */
export async function releaseHeldDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  endpointId: string,
): Promise<number> {
  return startAnew(transaction, outbox, {
    sql: `select h.id from webhook_deliveries h
      join webhook_endpoints w on w.id = h.endpoint_id and not w.disabled and w.deleted_at is null
      where h.endpoint_id = ? and h.status = 'held' and h.held_for is null
      order by h.id limit ? for update of h skip locked`,
    values: [endpointId, RELEASE_BATCH],
  });
}

/** Endpoints a sweep looks after at most. */
const FORGOTTEN_ENDPOINTS = 50;

/**
 * Releases what an enabled endpoint still has waiting: a queue longer than the call that enabled it would release, or
 * one whose release a crash cut short. One batch an endpoint, so that a sweep is short.
 */
export async function releaseForgottenDeliveries(database: Database, outbox: Outbox): Promise<number> {
  const endpoints = await database.autocommit((em) =>
    em.execute<{ id: string }[]>(
      `select w.id from webhook_endpoints w
       where not w.disabled and w.deleted_at is null
         and exists (select from webhook_deliveries h where h.endpoint_id = w.id and h.status = 'held' and h.held_for is null)
       limit ?`,
      [FORGOTTEN_ENDPOINTS],
    ),
  );
  let released = 0;
  for (const { id } of endpoints) {
    released += await database.systemTransaction((transaction) =>
      releaseHeldDeliveries(transaction, outbox, id),
    );
  }
  return released;
}
