import type { Tier } from '../organizations/tier.ts';
import type { LimitFacts } from './effective-limit.ts';
import type { LimitKind } from './tiers.ts';

/** As a statement has them: with {@link FACTS} among its columns and {@link factsOf} behind `organizations o`. */
export interface FactsRow {
  tier: Tier;
  override_kind: LimitKind | null;
  override_amount: number | null;
  own_amount: number | null;
}

// As double precision: amounts are below 2^53, and eight-byte integers would come as text.
export const FACTS = `o.tier, v.kind as override_kind, v.amount::float8 as override_amount, w.amount::float8 as own_amount`;

/** @param limited SQL that names what is limited. */
export const factsOf = (limited: string) => `
  left join limit_overrides v on v.org_id = o.id and v.limited = ${limited}
    and (v.expires_at is null or v.expires_at > now())
  left join own_limits w on w.org_id = o.id and w.counter = ${limited}`;

export function readFacts({ tier, override_kind, override_amount, own_amount }: FactsRow): LimitFacts {
  return {
    tier,
    override: override_kind === null ? null : { limit: override_amount, kind: override_kind },
    ownLimit: own_amount,
  };
}
