import type { Config } from '../../platform/config.ts';
import { splitList } from '../../platform/config.ts';
import { TIERS, type Tier } from '../organizations/tier.ts';
import { type MeteredPrices, readMeteredPrices } from './metered-counters.ts';

/** The prices of tiers at Stripe. `free` has none. */
export interface Prices {
  /** The price that is sold; undefined if the tier is not for sale. */
  priceOf(tier: Tier): string | undefined;
  /** Undefined for a price that this service does not know. */
  tierOf(priceId: string): Tier | undefined;
  /** In ascending order. */
  readonly tiersForSale: readonly Tier[];
  /** Prices for use beyond the limits of a tier. */
  readonly metered: MeteredPrices;
}

export function readPrices(
  config: Pick<
    Config,
    | 'STRIPE_PRICES_DEVELOPER'
    | 'STRIPE_PRICES_BUSINESS'
    | 'STRIPE_PRICES_ENTERPRISE'
    | 'STRIPE_METERED_PRICES'
  >,
): Prices {
  const idsByTier: Record<Tier, string[]> = {
    free: [],
    developer: splitList(config.STRIPE_PRICES_DEVELOPER),
    business: splitList(config.STRIPE_PRICES_BUSINESS),
    enterprise: splitList(config.STRIPE_PRICES_ENTERPRISE),
  };
  return {
    priceOf: (tier) => idsByTier[tier][0],
    tierOf: (priceId) => TIERS.find((tier) => idsByTier[tier].includes(priceId)),
    tiersForSale: TIERS.filter((tier) => idsByTier[tier].length > 0),
    metered: readMeteredPrices(config.STRIPE_METERED_PRICES),
  };
}

export const isHigherTier = (tier: Tier, other: Tier): boolean => TIERS.indexOf(tier) > TIERS.indexOf(other);
