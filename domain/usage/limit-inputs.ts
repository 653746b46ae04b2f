import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import type { Tier } from '../organizations/tier.ts';
import type { LimitedResource, UsageCounter } from './counters.ts';
import type { LimitInputs } from './effective-limit.ts';
import type { LimitKind } from './tiers.ts';

/** A row of {@link selectLimitInputs}. */
export interface LimitInputsRow {
  tier: Tier;
  overrideKind: LimitKind | null;
  overrideAmount: number | null;
  customAmount: number | null;
}

/**
 * Selects the inputs of the limits of organizations (`o`): a row for each resource (`k`), with its override (`v`) and custom
 * limit (`w`).
 */
export const selectLimitInputs = (db: Db, resources: readonly LimitedResource[]) =>
  db
    .selectFrom('organizations as o')
    .crossJoin(sql<{ resource: LimitedResource }>`unnest(${resources}::text[])`.as<'k'>(sql`k (resource)`))
    .leftJoin('limit_overrides as v', (join) =>
      join
        .onRef('v.org_id', '=', 'o.id')
        .onRef('v.resource', '=', 'k.resource')
        .on((eb) => eb.or([eb('v.expires_at', 'is', null), eb('v.expires_at', '>', sql<Date>`now()`)])),
    )
    .leftJoin('custom_limits as w', (join) =>
      join.onRef('w.org_id', '=', 'o.id').on('w.counter', '=', sql<UsageCounter>`k.resource`),
    )
    .select(['o.tier', 'v.kind as overrideKind', 'v.amount as overrideAmount', 'w.amount as customAmount']);

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
