/** Plans of an organization. Their limits are in `domain/usage/tiers.ts`. */
export const TIERS = ['free', 'developer', 'business', 'enterprise'] as const;
export type Tier = (typeof TIERS)[number];
