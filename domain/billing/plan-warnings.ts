import type { Tier } from '../organizations/tier.ts';
import { TIER_LIMITS } from '../usage/tiers.ts';
import type { UsageStatus } from '../usage/usage-status.ts';

/** A counter whose use is above the limit of a tier. */
export interface PlanWarning {
  counter: string;
  current: number;
  limit: number;
}

/**
 * The counters that a change to the tier would leave above its limits. The change is still allowed, because the owners
 * decide.
 */
export function findPlanWarnings(tier: Tier, counters: readonly UsageStatus[]): PlanWarning[] {
  return counters.flatMap(({ counter, current }) => {
    const limit = TIER_LIMITS[tier].limits[counter];
    return limit !== null && current > limit ? [{ counter, current, limit }] : [];
  });
}
