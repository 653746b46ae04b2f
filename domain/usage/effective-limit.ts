import type { Tier } from '../organizations/tier.ts';
import type { Limited } from './counters.ts';
import { type LimitKind, TIER_LIMITS } from './tiers.ts';

/** What is known of an organization's limit on one thing. An override that has expired is none. */
export interface LimitFacts {
  tier: Tier;
  override: { limit: number | null; kind: LimitKind } | null;
  /** The organization's own cap. */
  ownLimit: number | null;
}

export interface EffectiveLimit {
  /** Null: unlimited. */
  limit: number | null;
  kind: LimitKind;
  /** Whose word it is. */
  source: 'override' | 'tier' | 'own';
  /** Beyond it things are refused; null: nothing ever is. */
  refusedAbove: number | null;
}

/** What the organization is allowed by others: an override, then its tier (which a subscription sets). */
export function allowedLimit(
  limited: Limited,
  { tier, override }: Omit<LimitFacts, 'ownLimit'>,
): EffectiveLimit {
  const { kind, limits } = TIER_LIMITS[tier];
  const allowed = override ?? { limit: limits[limited], kind };
  return {
    ...allowed,
    source: override ? 'override' : 'tier',
    refusedAbove: allowed.kind === 'hard' ? allowed.limit : null,
  };
}

/**
 * What holds: what is allowed, or the organization's own cap where that is no higher. Own caps are hard: one that a soft
 * limit has come to lie below (a downgrade) still refuses.
 */
export function effectiveLimit(limited: Limited, facts: LimitFacts): EffectiveLimit {
  const allowed = allowedLimit(limited, facts);
  const { ownLimit } = facts;
  const isCapped = ownLimit !== null && (allowed.limit === null || ownLimit <= allowed.limit);
  if (isCapped) return { limit: ownLimit, kind: 'hard', source: 'own', refusedAbove: ownLimit };
  return { ...allowed, refusedAbove: allowed.refusedAbove ?? ownLimit };
}

/** How much more there may be before something is refused; null: nothing ever is. */
export function roomWithin({ refusedAbove }: EffectiveLimit, current: number): number | null {
  return refusedAbove === null ? null : Math.max(0, refusedAbove - current);
}

/** Share of the limit that is used, in percent, to two places; 100 only where all is. 0 where there is no limit. */
export function percentageOf(current: number, limit: number | null): number {
  if (limit === null) return 0;
  if (limit === 0) return 100;
  const rounded = Math.round((10_000 * current) / limit) / 100;
  return current < limit ? Math.min(rounded, 99.99) : rounded;
}
