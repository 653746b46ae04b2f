import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';

/** Plans of an organization. Their limits are in `domain/usage/tiers.ts`. */
export const TIERS = ['free', 'developer', 'business', 'enterprise'] as const;
export type Tier = (typeof TIERS)[number];

export async function setTier(db: Db, organizationId: string, tier: Tier): Promise<void> {
  await db
    .updateTable('organizations')
    .set({ tier, updated_at: sql`now()` })
    .where('id', '=', organizationId)
    .execute();
}
