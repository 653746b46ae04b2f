import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import { EnvironmentEntity } from './environment.entity.ts';
import { MemberEntity } from './member.entity.ts';
import { OrganizationEntity } from './organization.entity.ts';
import { toSlug } from './slug.ts';
import type { Tier } from './tier.ts';

export interface NewOrganization {
  name: string;
  /** Default: from the name. */
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
export function createOrganization(
  em: EntityManager,
  { name, slug = toSlug(name), tier, ownerId }: NewOrganization,
): CreatedOrganization {
  const organizationId = newId('organization');
  em.persist([
    em.create(OrganizationEntity, { id: organizationId, name, slug, tier }),
    em.create(MemberEntity, { organizationId, userId: ownerId, role: 'owner' }),
  ]);
  return {
    organizationId,
    productionEnvironmentId: createEnvironment(em, organizationId, 'production'),
    sandboxEnvironmentId: createEnvironment(em, organizationId, 'sandbox'),
  };
}

function createEnvironment(
  em: EntityManager,
  organizationId: string,
  kind: 'production' | 'sandbox',
): string {
  const id = newId('environment');
  em.persist(em.create(EnvironmentEntity, { id, organizationId, name: kind, kind }));
  return id;
}
