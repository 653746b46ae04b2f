import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { toSlug } from './slug.ts';
import type { Tier } from './tier.ts';

export interface NewOrganization {
  name: string;
  /** Default: derived from the name. */
  slug?: string;
  tier: Tier;
  ownerId: string;
}

export interface CreatedOrganization {
  organizationId: string;
  productionEnvironmentId: string;
  sandboxEnvironmentId: string;
}

/** Creates an organization with its owner and two environments, in the caller's transaction. */
export async function createOrganization(
  db: Db,
  { name, slug = toSlug(name), tier, ownerId }: NewOrganization,
): Promise<CreatedOrganization> {
  const typed = db;
  const organizationId = newId('organization');
  const productionEnvironmentId = newId('environment');
  const sandboxEnvironmentId = newId('environment');
  await typed
    .insertInto('organizations')
    .values({ id: organizationId, name, slug, tier, deleted_at: null })
    .execute();
  await typed
    .insertInto('members')
    .values({ org_id: organizationId, user_id: ownerId, role: 'owner' })
    .execute();
  await typed
    .insertInto('environments')
    .values([
      toEnvironment(organizationId, productionEnvironmentId, 'production'),
      toEnvironment(organizationId, sandboxEnvironmentId, 'sandbox'),
    ])
    .execute();
  return { organizationId, productionEnvironmentId, sandboxEnvironmentId };
}

const toEnvironment = (organizationId: string, id: string, kind: 'production' | 'sandbox') => ({
  id,
  org_id: organizationId,
  name: kind,
  slug: kind,
  kind,
});
