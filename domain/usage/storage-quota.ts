import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { STORAGE_COUNTER } from './counters.ts';
import { effectiveLimit, remainingQuota } from './effective-limit.ts';
import { usageLimitExceeded } from './limit-errors.ts';
import { type LimitInputsRow, toLimitInputs } from './limit-inputs.ts';

/**
 * Checks the storage quota before bytes are stored. Concurrent uploads can together exceed it by their sizes; the
 * counter itself stays exact.
 *
 * @throws AppError `usage_limit_exceeded`.
 */
export async function requireStorageQuota(
  em: EntityManager,
  organizationId: string,
  sizeBytes: number,
): Promise<void> {
  // Not a typed statement, because it must not flush the new attachments: triggers would count them before this check.
  const [row] = await em.execute<(LimitInputsRow & { current: number })[]>(
    sql`select o.tier, v.kind as "overrideKind", v.amount::float8 as "overrideAmount", w.amount::float8 as "customAmount",
       (coalesce((select sum(amount) from usage_counters where org_id = o.id and counter = ${STORAGE_COUNTER}), 0)
         + coalesce((select sum(amount) from usage_deltas where org_id = o.id and counter = ${STORAGE_COUNTER}), 0))::float8
         as current
     from organizations o
     left join limit_overrides v on v.org_id = o.id and v.resource = ${STORAGE_COUNTER}
       and (v.expires_at is null or v.expires_at > now())
     left join custom_limits w on w.org_id = o.id and w.counter = ${STORAGE_COUNTER}
     where o.id = ${organizationId}`,
  );
  if (!row) return;
  const limit = effectiveLimit(STORAGE_COUNTER, toLimitInputs(row));
  const remaining = remainingQuota(limit, Math.max(0, row.current));
  if (remaining !== null && sizeBytes > remaining)
    throw usageLimitExceeded(STORAGE_COUNTER, limit, new Date());
}
