import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { joinSql } from '../../platform/database/sql.ts';
import { type EffectiveLimit, effectiveLimit, remainingQuota } from './effective-limit.ts';
import { planLimitReached } from './limit-errors.ts';
import { joinLimits, LIMIT_COLUMNS, type LimitInputsRow, toLimitInputs } from './limit-inputs.ts';

/** SQL that counts the resources whose number is limited. Deleted inboxes do not count. */
const COUNT_SQL = {
  inboxes: sql`select count(*)::int from inboxes c where c.org_id = o.id and c.deleted_at is null`,
  domains: sql`select count(*)::int from domains c where c.org_id = o.id`,
};
export type QuotaResource = keyof typeof COUNT_SQL;

export interface ResourceQuota {
  resource: QuotaResource;
  current: number;
  limit: EffectiveLimit;
}

export async function readResourceQuotas(
  reader: RowReader,
  organizationId: string,
): Promise<ResourceQuota[]> {
  const resources = Object.keys(COUNT_SQL) as QuotaResource[];
  const rows = await reader.execute<(LimitInputsRow & { resource: QuotaResource; current: number })[]>(
    joinSql(
      resources.map(
        (
          resource,
        ) => sql`select ${resource} as resource, (${COUNT_SQL[resource]}) as current, ${LIMIT_COLUMNS}
          from organizations o ${joinLimits(sql`${resource}`)} where o.id = ${organizationId}`,
      ),
      ' union all ',
    ),
  );
  return rows.map(({ resource, current, ...row }) => ({
    resource,
    current,
    limit: effectiveLimit(resource, toLimitInputs(row)),
  }));
}

/**
 * Checks that the organization may create one more of the resource. Call it before the insert, in the same transaction:
 * under a hard limit an advisory lock serializes concurrent creations.
 *
 * @throws AppError `plan_limit_reached`.
 */
export async function requireQuota(
  em: EntityManager,
  organizationId: string,
  resource: QuotaResource,
): Promise<void> {
  const [row] = await em.execute<LimitInputsRow[]>(
    sql`select ${LIMIT_COLUMNS} from organizations o ${joinLimits(sql`${resource}`)} where o.id = ${organizationId}`,
  );
  if (!row) return;
  const limit = effectiveLimit(resource, toLimitInputs(row));
  if (remainingQuota(limit, 0) === null) return;
  await lockKey(em, 'cap', organizationId, resource);
  // A separate statement, so that it sees rows committed while this one waited for the lock.
  const [counted] = await em.execute<{ current: number }[]>(
    sql`select (${COUNT_SQL[resource]}) as current from organizations o where o.id = ${organizationId}`,
  );
  if (remainingQuota(limit, counted?.current ?? 0) === 0) throw planLimitReached(resource, limit);
}
