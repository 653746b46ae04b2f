import { sql } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { restartDeliveries } from './restart-deliveries.ts';

/** Deliveries released per transaction; their rows stay locked until it commits. */
export const RELEASE_BATCH_SIZE = 200;

/**
 * Restarts deliveries that were held while the endpoint was disabled, oldest first, at most {@link RELEASE_BATCH_SIZE}.
 * Releases nothing while the endpoint is disabled or deleted. Concurrent calls never release the same delivery.
 *
 * @returns how many were released.
 */
export async function releaseHeldDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  endpointId: string,
): Promise<number> {
  const selection = sql`select h.id from webhook_deliveries h
      join webhook_endpoints w on w.id = h.endpoint_id and not w.disabled and w.deleted_at is null
      where h.endpoint_id = ${endpointId} and h.status = 'held' and h.held_for is null
      order by h.id limit ${RELEASE_BATCH_SIZE} for update of h skip locked`;
  return restartDeliveries(transaction, outbox, selection);
}

/** Endpoints per sweep. */
const MAX_SWEPT_ENDPOINTS = 50;

/**
 * Sweep: releases deliveries that are still held although their endpoint is enabled, because the enabling call releases
 * only a limited number or a crash interrupted it. One batch per endpoint keeps the sweep short.
 */
export async function releaseHeldForEnabledEndpoints(database: Database, outbox: Outbox): Promise<number> {
  const endpoints = await database.autocommit((em) =>
    em.execute<{ id: string }[]>(
      sql`select w.id from webhook_endpoints w
       where not w.disabled and w.deleted_at is null
         and exists (select from webhook_deliveries h where h.endpoint_id = w.id and h.status = 'held' and h.held_for is null)
       limit ${MAX_SWEPT_ENDPOINTS}`,
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
