import { TIERS, type Tier } from '../organizations/tier.ts';
import type { LimitedResource } from './counters.ts';

/** A `soft` limit only warns; a `hard` limit refuses usage beyond it. */
export const LIMIT_KINDS = ['soft', 'hard'] as const;
export type LimitKind = (typeof LIMIT_KINDS)[number];

export interface TierLimits {
  kind: LimitKind;
  /** Null: unlimited. */
  limits: Readonly<Record<LimitedResource, number | null>>;
}

const GIB_BYTES = 1024 ** 3;

/** The table in `docs/usage.md`, "Limits". */
export const TIER_LIMITS: Readonly<Record<Tier, TierLimits>> = {
  free: {
    kind: 'hard',
    limits: {
      messages_sent: 3_000,
      messages_received: 3_000,
      storage_bytes: GIB_BYTES,
      api_calls: 100_000,
      webhook_deliveries: 30_000,
      inboxes: 5,
      domains: 1,
    },
  },
  developer: {
    kind: 'soft',
    limits: {
      messages_sent: 10_000,
      messages_received: 10_000,
      storage_bytes: 10 * GIB_BYTES,
      api_calls: 1_000_000,
      webhook_deliveries: 100_000,
      inboxes: 25,
      domains: 10,
    },
  },
  business: {
    kind: 'soft',
    limits: {
      messages_sent: 150_000,
      messages_received: 150_000,
      storage_bytes: 150 * GIB_BYTES,
      api_calls: 10_000_000,
      webhook_deliveries: 1_500_000,
      inboxes: 500,
      domains: 100,
    },
  },
  enterprise: {
    kind: 'soft',
    limits: {
      messages_sent: null,
      messages_received: null,
      storage_bytes: null,
      api_calls: null,
      webhook_deliveries: null,
      inboxes: null,
      domains: null,
    },
  },
};

/** Tiers whose limits are hard. */
export const HARD_TIERS: readonly Tier[] = TIERS.filter((tier) => TIER_LIMITS[tier].kind === 'hard');
