import type { Static } from 'typebox';
import type { Environment } from '../../domain/organizations/environment.entity.ts';
import type { Organization } from '../../domain/organizations/organization.entity.ts';
import { enumOf, id, strictObject, text, timestamp } from '../schemas.ts';

export const OrganizationRecord = strictObject(
  {
    id: id('Organization id (org_…).'),
    name: text(255),
    slug: text(255),
    status: enumOf(['active', 'suspended']),
    created_at: timestamp(),
    updated_at: timestamp(),
  },
  { $id: 'Organization', title: 'Organization' },
);

export const EnvironmentRecord = strictObject(
  {
    id: id('Environment id (env_…).'),
    name: text(255),
    kind: enumOf(['production', 'sandbox'], {
      description: 'Messages from a sandbox are never delivered to real recipients.',
    }),
    status: enumOf(['active', 'suspended']),
    created_at: timestamp(),
    updated_at: timestamp(),
  },
  { $id: 'Environment', title: 'Environment' },
);

export function presentOrganization(organization: Organization): Static<typeof OrganizationRecord> {
  const { id, name, slug, status, createdAt, updatedAt } = organization;
  return { id, name, slug, status, created_at: createdAt.toISOString(), updated_at: updatedAt.toISOString() };
}

export function presentEnvironment(environment: Environment): Static<typeof EnvironmentRecord> {
  const { id, name, kind, status, createdAt, updatedAt } = environment;
  return { id, name, kind, status, created_at: createdAt.toISOString(), updated_at: updatedAt.toISOString() };
}
