import type { Limited } from './counters.ts';
import { type LimitKind, TIER_LIMITS, type Tier } from './tiers.ts';

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
}

/** What the organization is allowed by others: an override, then its tier (which a subscription sets). */
export function allowedLimit(
  limited: Limited,
  { tier, override }: Omit<LimitFacts, 'ownLimit'>,
): EffectiveLimit {
  if (override) return { ...override, source: 'override' };
  const { kind, limits } = TIER_LIMITS[tier];
  return { limit: limits[limited], kind, source: 'tier' };
}

/** What holds: what is allowed, or the organization's own cap where that is no higher. Own caps are hard. */
export function effectiveLimit(limited: Limited, facts: LimitFacts): EffectiveLimit {
  const allowed = allowedLimit(limited, facts);
  const { ownLimit } = facts;
  const isCapped = ownLimit !== null && (allowed.limit === null || ownLimit <= allowed.limit);
  return isCapped ? { limit: ownLimit, kind: 'hard', source: 'own' } : allowed;
}

/** How much more there may be before something is refused; null: nothing ever is. */
export function roomWithin({ limit, kind }: EffectiveLimit, current: number): number | null {
  return kind === 'soft' || limit === null ? null : Math.max(0, limit - current);
}

/** Share of the limit that is used, in percent, to two places; 0 where there is no limit. */
export function percentageOf(current: number, limit: number | null): number {
  if (limit === null) return 0;
  if (limit === 0) return 100;
  return Math.round((10_000 * current) / limit) / 100;
}
