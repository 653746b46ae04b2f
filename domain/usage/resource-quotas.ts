import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Db } from '../../platform/database/tables.ts';
import { STORAGE_COUNTER } from './counters.ts';
import { type EffectiveLimit, effectiveLimit, remainingQuota } from './effective-limit.ts';
import { planLimitReached, usageLimitExceeded } from './limit-errors.ts';
import { selectLimitInputs, toLimitInputs } from './limit-inputs.ts';
import { readUsageStatuses } from './usage-status.ts';

/** Counts the resources whose number is limited. Each alias counts as an inbox; deleted inboxes do not count. */
const SELECT_COUNT = {
  inboxes: (db: Db, organizationId: string) =>
    db
      .selectFrom('inboxes')
      .select(sql<number>`coalesce(sum(1 + cardinality(aliases)), 0)`.as('current'))
      .where('org_id', '=', organizationId)
      .where('deleted_at', 'is', null),
  domains: (db: Db, organizationId: string) =>
    db.selectFrom('domains').select(sql<number>`count(*)`.as('current')).where('org_id', '=', organizationId),
};
export type QuotaResource = keyof typeof SELECT_COUNT;

export interface ResourceQuota {
  resource: QuotaResource;
  current: number;
  limit: EffectiveLimit;
}

export async function readResourceQuotas(db: Db, organizationId: string): Promise<ResourceQuota[]> {
  const { inboxes, domains } = SELECT_COUNT;
  const rows = await selectLimitInputs(db, ['inboxes', 'domains'])
    .select([
      sql<QuotaResource>`k.resource`.as('resource'),
      sql<number>`case k.resource when 'inboxes' then ${inboxes(db, organizationId)} else ${domains(db, organizationId)} end`.as(
        'current',
      ),
    ])
    .where('o.id', '=', organizationId)
    .execute();
  return rows.map(({ resource, current, ...row }) => ({
    resource,
    current,
    limit: effectiveLimit(resource, toLimitInputs(row)),
  }));
}

/**
 * Checks that the organization may create `added` more of the resource. Call it before the insert, in the same transaction:
 * under a hard limit an advisory lock serializes concurrent creations.
 *
 * @throws AppError `plan_limit_reached`.
 */
export async function requireQuota(
  db: Db,
  organizationId: string,
  resource: QuotaResource,
  added = 1,
): Promise<void> {
  const row = await selectLimitInputs(db, [resource]).where('o.id', '=', organizationId).executeTakeFirst();
  if (!row) return;
  const limit = effectiveLimit(resource, toLimitInputs(row));
  if (remainingQuota(limit, 0) === null) return;
  await lockKey(db, 'cap', organizationId, resource);
  // A separate statement, so that it sees rows committed while this one waited for the lock.
  const counted = await SELECT_COUNT[resource](db, organizationId).executeTakeFirst();
  if ((remainingQuota(limit, counted?.current ?? 0) ?? added) < added)
    throw planLimitReached(resource, limit);
}

/**
 * Checks the storage quota before bytes are stored. Concurrent uploads can together exceed it by their sizes; the
 * counter itself stays exact.
 *
 * @throws AppError `usage_limit_exceeded`.
 */
export async function requireStorageQuota(db: Db, organizationId: string, sizeBytes: number): Promise<void> {
  const at = new Date();
  const [status] = await readUsageStatuses(db, {
    organizationIds: [organizationId],
    counters: [STORAGE_COUNTER],
    at,
  });
  if (!status) return;
  const remaining = remainingQuota(status.limit, status.current);
  if (remaining !== null && sizeBytes > remaining)
    throw usageLimitExceeded(STORAGE_COUNTER, status.limit, at);
}
