import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { recordAudit, replacedValues } from '../audit/record-audit.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { type Organization, OrganizationEntity } from './organization.entity.ts';
import { requireSlug } from './slug.ts';

/** Omitted fields stay. */
export interface OrganizationChange {
  name?: string;
  slug?: string;
}

export type OrganizationService = ReturnType<typeof createOrganizationService>;

export function createOrganizationService({ database }: { database: Database }) {
  return {
    /** Returns the caller's organization. */
    get: (scope: Scope): Promise<Organization> =>
      database.read(scope, ({ db }) => findOrganization(db, scope)),

    /** @throws AppError `validation_error`; `already_exists` for the slug of another organization. */
    update: (scope: Scope, { name, slug }: OrganizationChange): Promise<Organization> =>
      database.transaction(scope, async ({ db }) => {
        requireOrganizationWide(scope);
        const before = await findOrganization(db, scope);
        const change = {
          ...(name !== undefined && { name: requireSafeName(name, '/body/name') }),
          ...(slug !== undefined && { slug: requireSlug(slug, '/body/slug') }),
        };
        const after = { ...before, ...change };
        const isChanged = after.name !== before.name || after.slug !== before.slug;
        const organization = isChanged ? await changeOrganization(db, scope, change) : before;
        await recordAudit(db, scope, {
          action: 'organization.updated',
          resourceType: 'organization',
          resourceId: organization.id,
          details: { ...change, ...replacedValues(before, change) },
        });
        return organization;
      }),
  };
}

function findOrganization(db: Db, { organizationId }: Scope): Promise<Organization> {
  return db
    .selectFrom('organizations')
    .select(columnsOf(OrganizationEntity))
    .where('id', '=', organizationId)
    .executeTakeFirstOrThrow(() => notFound('organization', organizationId));
}

function changeOrganization(
  db: Db,
  { organizationId }: Scope,
  change: OrganizationChange,
): Promise<Organization> {
  return db
    .updateTable('organizations')
    .set({ ...change, updated_at: sql`now()` })
    .where('id', '=', organizationId)
    .returning(columnsOf(OrganizationEntity))
    .executeTakeFirstOrThrow(() => notFound('organization', organizationId));
}
