import { sql } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Sql } from '../../platform/database/sql.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { IS_HELD_BY_SUSPENSION, JOIN_STATUSES } from '../events/event-suspension.ts';
import { isOffSql } from '../toggles/find-toggle.ts';
import { isFailing, lockProbedEndpoint, startHolding } from './endpoint-health.ts';
import { restartDeliveries } from './restart-deliveries.ts';

/** Deliveries released per transaction; their rows stay locked until it commits. */
export const RELEASE_BATCH_SIZE = 200;

/**
 * Restarts deliveries that were held while the endpoint was disabled or failing, oldest first, at most
 * {@link RELEASE_BATCH_SIZE}. Releases nothing while the endpoint is disabled or deleted. Concurrent calls never release
 * the same delivery.
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
      where h.endpoint_id = ${endpointId} and h.status = 'held'
        and (h.held_for is null or h.held_for = 'endpoint_failing')
      order by h.id limit ${RELEASE_BATCH_SIZE} for update of h skip locked`;
  return restartDeliveries(transaction, outbox, { selection, mode: 'release' });
}

/** Releases the first batch. If more may wait, new deliveries queue behind them and a run releases the rest. */
export async function startRelease(
  transaction: Transaction,
  outbox: Outbox,
  endpointId: string,
): Promise<number> {
  const released = await releaseHeldDeliveries(transaction, outbox, endpointId);
  if (released === RELEASE_BATCH_SIZE) await startHolding(transaction, outbox, endpointId);
  return released;
}

/** Endpoints per sweep. */
const MAX_SWEPT_ENDPOINTS = 50;

/**
 * Sweep: takes care of deliveries that are held although no run will release them, because they were added while the last
 * release ended. A failing endpoint gets a probe; otherwise they are released.
 *
 * @returns how many were released.
 */
export async function releaseHeldForEnabledEndpoints(database: Database, outbox: Outbox): Promise<number> {
  const endpoints = await database.autocommit((em) =>
    em.execute<{ id: string }[]>(
      sql`select w.id from webhook_endpoints w
       where not w.disabled and w.deleted_at is null and w.holding_since is null
         and exists (select from webhook_deliveries h where h.endpoint_id = w.id and h.status = 'held'
           and (h.held_for is null or h.held_for = 'endpoint_failing'))
       limit ${MAX_SWEPT_ENDPOINTS}`,
    ),
  );
  let released = 0;
  for (const { id } of endpoints) {
    released += await database.systemTransaction(async (transaction) => {
      const endpoint = await lockProbedEndpoint(transaction.em, id);
      if (!endpoint || endpoint.holdingSince) return 0;
      if (!isFailing(endpoint)) return startRelease(transaction, outbox, id);
      await startHolding(transaction, outbox, id);
      return 0;
    });
  }
  return released;
}

/** Batches per sweep. */
const MAX_RECOVERED_BATCHES = 10;

/**
 * Sweep: restarts the deliveries that were held while their organization was closed, oldest first. Those of a disabled
 * endpoint are then held for it.
 *
 * @returns how many were restarted.
 */
export function releaseOfRecoveredOrganizations(database: Database, outbox: Outbox): Promise<number> {
  return releaseBatches(
    database,
    outbox,
    sql`select h.id from webhook_deliveries h
      join organizations o on o.id = h.org_id and o.deleted_at is null
      where h.status = 'held' and h.held_for = 'organization_deleted'
      order by h.created_at limit ${RELEASE_BATCH_SIZE} for update of h skip locked`,
  );
}

/**
 * Restarts the deliveries that were held while deliveries were switched off, oldest first; none while they are. For the run
 * that staff start, and as a sweep.
 *
 * @returns how many were restarted; 0 only if none is left.
 */
export function releaseSwitchedOffDeliveries(database: Database, outbox: Outbox): Promise<number> {
  return releaseBatches(
    database,
    outbox,
    sql`select h.id from webhook_deliveries h
      where h.status = 'held' and h.held_for = 'switched_off' and not ${isOffSql('webhook_deliveries')}
      order by h.created_at limit ${RELEASE_BATCH_SIZE} for update of h skip locked`,
  );
}

async function releaseBatches(database: Database, outbox: Outbox, selection: Sql): Promise<number> {
  let total = 0;
  for (let batch = 0; batch < MAX_RECOVERED_BATCHES; batch += 1) {
    const released = await database.systemTransaction((transaction) =>
      restartDeliveries(transaction, outbox, { selection, mode: 'release' }),
    );
    total += released;
    if (released < RELEASE_BATCH_SIZE) break;
  }
  return total;
}

/**
 * Restarts deliveries of an organization that no suspension holds any longer, oldest first, at most
 * {@link RELEASE_BATCH_SIZE}. Those of a disabled endpoint are then held for it.
 *
 * @returns how many were restarted.
 */
export function releaseSuspendedDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  organizationId: string,
): Promise<number> {
  const selection = sql`select d.id from webhook_deliveries d join events v on v.id = d.event_id ${JOIN_STATUSES}
      where d.org_id = ${organizationId} and d.status = 'held' and d.held_for = 'suspension' and not ${IS_HELD_BY_SUSPENSION}
      order by d.id limit ${RELEASE_BATCH_SIZE} for update of d skip locked`;
  return restartDeliveries(transaction, outbox, { selection, mode: 'release' });
}
