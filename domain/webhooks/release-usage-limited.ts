import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { dbOf } from '../../platform/database/bridge.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
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
  const [remaining = 0] = await readRemaining(transaction.em, [organizationId], now);
  const maxReleased = Math.min(remaining, RELEASE_BATCH_SIZE);
  if (maxReleased === 0) return 0;
  // Materialized: a plan that re-evaluates the subquery for each row would exceed the limit.
  const selection = sql`with oldest as materialized (
        select h.id from webhook_deliveries h
        join webhook_endpoints w on w.id = h.endpoint_id and not w.disabled and w.deleted_at is null
        where h.org_id = ${organizationId} and h.status = 'held' and h.held_for = 'usage_limit'
        order by h.id limit ${maxReleased} for update of h skip locked)
      select id from oldest`;
  return restartDeliveries(transaction, outbox, { selection, mode: 'queue' });
}

async function readRemaining(em: EntityManager, organizationIds: string[], now: Date): Promise<number[]> {
  const usage = await readUsageStatuses(dbOf(em), {
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
const findOrganizationsSql = (after: string) => sql`with recursive waiting as (
    (select org_id from webhook_deliveries
     where status = 'held' and held_for = 'usage_limit' and org_id > ${after} order by org_id limit 1)
    union all
    select (select d.org_id from webhook_deliveries d
      where d.status = 'held' and d.held_for = 'usage_limit' and d.org_id > waiting.org_id
      order by d.org_id limit 1)
    from waiting where waiting.org_id is not null)
  select org_id as id from waiting where org_id is not null limit ${PAGE_SIZE}`;

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
    const page = await database.query<{ id: string }>(findOrganizationsSql(after));
    const ids = page.map(({ id }) => id);
    const remaining = await database.autocommit((em) => readRemaining(em, ids, now()));
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
