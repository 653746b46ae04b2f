import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { findRow } from '../../platform/database/find-rows.ts';
import { notFound } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { type Organization, OrganizationEntity } from './organization.entity.ts';
import { requireSlug } from './slug.ts';

/** Omitted fields stay. */
export interface OrganizationChange {
  name?: string;
  slug?: string;
}

export interface OrganizationService {
  /** Returns the caller's organization. */
  get(scope: Scope): Promise<Organization>;
  /** @throws AppError `validation_error`; `already_exists` for the slug of another organization. */
  update(scope: Scope, change: OrganizationChange): Promise<Organization>;
}

export function createOrganizationService({ database }: { database: Database }): OrganizationService {
  return {
    get: (scope) =>
      database.read(scope, async (reader) => {
        const organization = await findRow(reader, OrganizationEntity, {
          where: { id: scope.organizationId },
        });
        if (!organization) throw notFound('organization', scope.organizationId);
        return organization;
      }),

    update: (scope, { name, slug }) =>
      database.transaction(scope, async ({ em }) => {
        requireOrganizationWide(scope);
        const organization = await findOwn(em, scope);
        if (name !== undefined) organization.name = requireSafeName(name, '/body/name');
        if (slug !== undefined) organization.slug = requireSlug(slug, '/body/slug');
        await recordAudit(em, scope, {
          action: 'organization.updated',
          resourceType: 'organization',
          resourceId: organization.id,
          details: {
            ...(name === undefined ? {} : { name: organization.name }),
            ...(slug === undefined ? {} : { slug: organization.slug }),
          },
        });
        return organization;
      }),
  };
}

function findOwn(em: EntityManager, { organizationId }: Scope): Promise<Organization> {
  return em.findOneOrFail(OrganizationEntity, { id: organizationId });
}
