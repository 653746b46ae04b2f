import { type Expression, sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { remainingQuota } from '../usage/effective-limit.ts';
import { readUsageStatuses } from '../usage/usage-status.ts';
import { RELEASE_BATCH_SIZE } from './release-held-deliveries.ts';
import { restartDeliveries } from './restart-deliveries.ts';

/**
 * Restarts deliveries that were held because the organization reached its limit of deliveries: oldest first, as many as
 * the limit now allows, at most {@link RELEASE_BATCH_SIZE}. Deliveries to disabled endpoints stay held.
 *
 * @returns how many were restarted.
 */
export async function releaseUsageLimited(
  transaction: Transaction,
  outbox: Outbox,
  { organizationId, now }: { organizationId: string; now: Date },
): Promise<number> {
  const { db } = transaction;
  const [remaining = 0] = await readRemaining(db, [organizationId], now);
  const maxReleased = Math.min(remaining, RELEASE_BATCH_SIZE);
  if (maxReleased === 0) return 0;
  const selection = db
    .selectFrom('webhook_deliveries as h')
    .innerJoin('webhook_endpoints as w', 'w.id', 'h.endpoint_id')
    .select('h.id')
    .where('w.disabled', '=', false)
    .where('w.deleted_at', 'is', null)
    .where('h.org_id', '=', organizationId)
    .where('h.status', '=', 'held')
    .where('h.held_for', '=', 'usage_limit')
    .orderBy('h.id')
    .limit(maxReleased)
    .forUpdate('h')
    .skipLocked();
  return restartDeliveries(transaction, outbox, { selection, mode: 'queue' });
}

async function readRemaining(db: Db, organizationIds: string[], now: Date): Promise<number[]> {
  const usage = await readUsageStatuses(db, {
    organizationIds,
    counters: ['webhook_deliveries'],
    at: now,
  });
  const remainingById = new Map(
    usage.map(({ organizationId, limit, current }) => [organizationId, remainingQuota(limit, current)]),
  );
  // Null: the limit is not enforced. Missing: the organization does not exist.
  return organizationIds.map(
    (id) => remainingById.get(id) ?? (remainingById.has(id) ? Number.POSITIVE_INFINITY : 0),
  );
}

/** Organizations per statement. */
const PAGE_SIZE = 200;

/** Loose index scan: one step per organization, regardless of its number of held deliveries. */
function findLimitedOrganizations(db: Db, after: string): Promise<{ id: string }[]> {
  const nextAfter = (previous: Expression<string>) =>
    db
      .selectFrom('webhook_deliveries as d')
      .select('d.org_id as id')
      .where('d.status', '=', 'held')
      .where('d.held_for', '=', 'usage_limit')
      .where('d.org_id', '>', previous)
      .orderBy('d.org_id')
      .limit(1);
  return db
    .withRecursive('waiting', (cte) =>
      cte.selectNoFrom(nextAfter(sql`${after}::text`).as('id')).unionAll(
        cte
          .selectFrom('waiting')
          .select(nextAfter(sql.ref('waiting.id')).as('id'))
          .where('waiting.id', 'is not', null),
      ),
    )
    .selectFrom('waiting')
    .select('id')
    .where('id', 'is not', null)
    .$narrowType<{ id: string }>()
    .limit(PAGE_SIZE)
    .execute();
}

/**
 * Sweep: releases deliveries after the start of a new month or the end of an override, and from queues longer than one
 * batch. One batch per organization.
 */
export async function releaseUsageLimitedForAll(
  database: Database,
  outbox: Outbox,
  now: () => Date = () => new Date(),
): Promise<number> {
  let released = 0;
  for (let after = ''; ; ) {
    const page = await findLimitedOrganizations(database.db, after);
    const ids = page.map(({ id }) => id);
    const remaining = await readRemaining(database.db, ids, now());
    for (const [index, organizationId] of ids.entries()) {
      if (!remaining[index]) continue;
      released += await database.systemTransaction((transaction) =>
        releaseUsageLimited(transaction, outbox, { organizationId, now: now() }),
      );
    }
    after = ids.at(-1) ?? '';
    if (ids.length < PAGE_SIZE) return released;
  }
}
