import type { Tier } from '../organizations/tier.ts';
import type { LimitedResource } from './counters.ts';
import { type LimitKind, TIER_LIMITS } from './tiers.ts';

/** What determines an organization's limit on one resource. An expired override is left out. */
export interface LimitInputs {
  tier: Tier;
  override: { limit: number | null; kind: LimitKind } | null;
  /** The limit that the organization has set for itself; null: none. */
  customLimit: number | null;
}

export interface EffectiveLimit {
  /** Null: unlimited. */
  limit: number | null;
  kind: LimitKind;
  /** Where the limit comes from; `own` is the organization's custom limit. */
  source: 'override' | 'tier' | 'own';
  /** Usage beyond it is refused; null: nothing is refused. */
  enforcedLimit: number | null;
}

/** The limit granted to the organization: the override if there is one, else that of its tier. */
export function allowedLimit(
  resource: LimitedResource,
  { tier, override }: Omit<LimitInputs, 'customLimit'>,
): EffectiveLimit {
  const { kind, limits } = TIER_LIMITS[tier];
  const allowed = override ?? { limit: limits[resource], kind };
  return {
    ...allowed,
    source: override ? 'override' : 'tier',
    enforcedLimit: allowed.kind === 'hard' ? allowed.limit : null,
  };
}

/**
 * The limit in effect: the custom limit if it is not higher than the allowed one, else the allowed one. Custom limits
 * are hard and stay enforced even when a downgrade puts a soft limit below them.
 */
export function effectiveLimit(resource: LimitedResource, inputs: LimitInputs): EffectiveLimit {
  const allowed = allowedLimit(resource, inputs);
  const { customLimit } = inputs;
  const isCustom = customLimit !== null && (allowed.limit === null || customLimit <= allowed.limit);
  if (isCustom) return { limit: customLimit, kind: 'hard', source: 'own', enforcedLimit: customLimit };
  return { ...allowed, enforcedLimit: allowed.enforcedLimit ?? customLimit };
}

/** How much may still be used before something is refused; null: nothing is refused. */
export function remainingQuota({ enforcedLimit }: EffectiveLimit, current: number): number | null {
  return enforcedLimit === null ? null : Math.max(0, enforcedLimit - current);
}

/** Usage in percent of the limit, to two decimals; below the limit at most 99.99. 0 without a limit. */
export function percentageOf(current: number, limit: number | null): number {
  if (limit === null) return 0;
  if (limit === 0) return 100;
  const rounded = Math.round((10_000 * current) / limit) / 100;
  return current < limit ? Math.min(rounded, 99.99) : rounded;
}
