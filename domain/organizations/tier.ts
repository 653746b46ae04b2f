/** The plans of an organization; what each allows: `domain/usage/tiers.ts`. */
export const TIERS = ['free', 'developer', 'business', 'enterprise'] as const;
export type Tier = (typeof TIERS)[number];
