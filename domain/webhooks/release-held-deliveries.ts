import { type Expression, sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { IS_HELD_BY_SUSPENSION } from '../events/event-suspension.ts';
import { isSwitchedOff } from '../toggles/toggles.ts';
import { isFailing, lockProbedEndpoint, startHolding } from './endpoint-health.ts';
import { restartDeliveries } from './restart-deliveries.ts';

/** Deliveries released per transaction; their rows stay locked until it commits. */
export const RELEASE_BATCH_SIZE = 200;

/** SQL: the held delivery `h` waits until its endpoint is enabled or answers again. */
const IS_BACKLOG = sql<boolean>`(h.held_for is null or h.held_for = 'endpoint_failing')`;

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
  const selection = transaction.db
    .selectFrom('webhook_deliveries as h')
    .innerJoin('webhook_endpoints as w', 'w.id', 'h.endpoint_id')
    .select('h.id')
    .where('w.disabled', '=', false)
    .where('w.deleted_at', 'is', null)
    .where('h.endpoint_id', '=', endpointId)
    .where('h.status', '=', 'held')
    .where(IS_BACKLOG)
    .orderBy('h.id')
    .limit(RELEASE_BATCH_SIZE)
    .forUpdate('h')
    .skipLocked();
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
 * Sweep: finds deliveries that are held although no run will release them, because they were added while the last
 * release ended. Starts a probe if the endpoint is failing; otherwise releases the deliveries.
 *
 * @returns how many were released.
 */
export async function releaseHeldForEnabledEndpoints(database: Database, outbox: Outbox): Promise<number> {
  const endpoints = await database.db
    .selectFrom('webhook_endpoints as w')
    .select('w.id')
    .where('w.disabled', '=', false)
    .where('w.deleted_at', 'is', null)
    .where('w.holding_since', 'is', null)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('webhook_deliveries as h')
          .select('h.id')
          .whereRef('h.endpoint_id', '=', 'w.id')
          .where('h.status', '=', 'held')
          .where(IS_BACKLOG),
      ),
    )
    .limit(MAX_SWEPT_ENDPOINTS)
    .execute();
  let released = 0;
  for (const { id } of endpoints) {
    released += await database.systemTransaction(async (transaction) => {
      const endpoint = await lockProbedEndpoint(transaction.db, id);
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
 * Sweep: restarts the deliveries that were held while their organization was closed, oldest first. Deliveries to a
 * disabled endpoint are then held until it is enabled.
 *
 * @returns how many were restarted.
 */
export function releaseOfRecoveredOrganizations(database: Database, outbox: Outbox): Promise<number> {
  return releaseBatches(database, outbox, (db) =>
    db
      .selectFrom('webhook_deliveries as h')
      .innerJoin('organizations as o', 'o.id', 'h.org_id')
      .select('h.id')
      .where('o.deleted_at', 'is', null)
      .where('h.status', '=', 'held')
      .where('h.held_for', '=', 'organization_deleted')
      .orderBy('h.created_at')
      .limit(RELEASE_BATCH_SIZE)
      .forUpdate('h')
      .skipLocked(),
  );
}

/**
 * Restarts the deliveries that were held while deliveries were switched off, oldest first. Does nothing while they are
 * switched off. Called by the run that staff start, and as a sweep.
 *
 * @returns how many were restarted; 0 only if none is left.
 */
export function releaseSwitchedOffDeliveries(database: Database, outbox: Outbox): Promise<number> {
  return releaseBatches(database, outbox, (db) =>
    db
      .selectFrom('webhook_deliveries')
      .select('id')
      .where('status', '=', 'held')
      .where('held_for', '=', 'switched_off')
      .where(sql<boolean>`not ${isSwitchedOff('webhook_deliveries')}`)
      .orderBy('created_at')
      .limit(RELEASE_BATCH_SIZE)
      .forUpdate()
      .skipLocked(),
  );
}

async function releaseBatches(
  database: Database,
  outbox: Outbox,
  select: (db: Db) => Expression<{ id: string }>,
): Promise<number> {
  let total = 0;
  for (let batch = 0; batch < MAX_RECOVERED_BATCHES; batch += 1) {
    const released = await database.systemTransaction((transaction) =>
      restartDeliveries(transaction, outbox, { selection: select(transaction.db), mode: 'release' }),
    );
    total += released;
    if (released < RELEASE_BATCH_SIZE) break;
  }
  return total;
}

/**
 * Restarts deliveries of an organization that are no longer held by a suspension, oldest first, at most
 * {@link RELEASE_BATCH_SIZE}. Deliveries to a disabled endpoint are then held until it is enabled.
 *
 * @returns how many were restarted.
 */
export function releaseSuspendedDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  organizationId: string,
): Promise<number> {
  const selection = transaction.db
    .selectFrom('webhook_deliveries as d')
    .innerJoin('events as v', 'v.id', 'd.event_id')
    .innerJoin('organizations as o', 'o.id', 'v.org_id')
    .innerJoin('environments as n', 'n.id', 'v.env_id')
    .leftJoin('inboxes as i', 'i.id', 'v.inbox_id')
    .select('d.id')
    .where('d.org_id', '=', organizationId)
    .where('d.status', '=', 'held')
    .where('d.held_for', '=', 'suspension')
    .where(sql<boolean>`not ${IS_HELD_BY_SUSPENSION}`)
    .orderBy('d.id')
    .limit(RELEASE_BATCH_SIZE)
    .forUpdate('d')
    .skipLocked();
  return restartDeliveries(transaction, outbox, { selection, mode: 'release' });
}
