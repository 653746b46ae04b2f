import { sql } from '@mikro-orm/core';
import type { Sql } from '../../platform/database/sql.ts';
import type { Tier } from '../organizations/tier.ts';
import type { LimitInputs } from './effective-limit.ts';
import type { LimitKind } from './tiers.ts';

/** A row of a query with {@link LIMIT_COLUMNS} in its select list and {@link joinLimits} after `organizations o`. */
export interface LimitInputsRow {
  tier: Tier;
  overrideKind: LimitKind | null;
  overrideAmount: number | null;
  customAmount: number | null;
}

// Cast to double precision: the driver returns bigint as text, and amounts are below 2^53.
export const LIMIT_COLUMNS = sql`o.tier, v.kind as "overrideKind",
  v.amount::float8 as "overrideAmount", w.amount::float8 as "customAmount"`;

/** @param resource SQL that names what is limited. */
export const joinLimits = (resource: Sql) => sql`
  left join limit_overrides v on v.org_id = o.id and v.resource = ${resource}
    and (v.expires_at is null or v.expires_at > now())
  left join custom_limits w on w.org_id = o.id and w.counter = ${resource}`;

export function toLimitInputs({
  tier,
  overrideKind,
  overrideAmount,
  customAmount,
}: LimitInputsRow): LimitInputs {
  return {
    tier,
    override: overrideKind === null ? null : { limit: overrideAmount, kind: overrideKind },
    customLimit: customAmount,
  };
}
