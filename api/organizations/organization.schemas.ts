import { type Static, Type } from 'typebox';
import type { Environment } from '../../domain/organizations/environment.entity.ts';
import type { Organization } from '../../domain/organizations/organization.entity.ts';
import { TIERS } from '../../domain/organizations/tier.ts';
import { minimalOf } from '../minimal-response.ts';
import { enumOf, id, resource, strictObject, text, timestamp } from '../schemas.ts';

export const OrganizationRecord = resource(
  'organization',
  {
    id: id('Organization id (org_…).'),
    name: text(255),
    slug: text(255),
    status: enumOf(['active', 'suspended']),
    tier: enumOf(TIERS, { description: 'Determines the limits: GET /org/limits.' }),
    created_at: timestamp(),
    updated_at: timestamp(),
  },
  { $id: 'Organization', title: 'Organization' },
);

export const EnvironmentRecord = resource(
  'environment',
  {
    id: id('Environment id (env_…).'),
    name: text(255),
    slug: text(255, { description: 'The environment production is the default of keys and sessions.' }),
    kind: enumOf(['production', 'sandbox'], {
      description: 'Messages from a sandbox are never delivered to real recipients.',
    }),
    status: enumOf(['active', 'suspended']),
    created_at: timestamp(),
    updated_at: timestamp(),
  },
  { $id: 'Environment', title: 'Environment' },
);

export const MinimalOrganization = minimalOf(OrganizationRecord, ['id', 'status']);
export const MinimalEnvironment = minimalOf(EnvironmentRecord, ['id', 'status']);

const slug = text(40, { minLength: 2, description: 'Lower-case letters, digits and hyphens.' });
const name = text(200, { minLength: 1, description: 'At most 50 characters, without links.' });

export const UpdateOrganization = strictObject(
  { name: Type.Optional(name), slug: Type.Optional(slug) },
  { $id: 'UpdateOrganization', title: 'UpdateOrganization' },
);
export const CreateEnvironment = strictObject(
  {
    name,
    slug: Type.Optional(slug),
    kind: enumOf(['production', 'sandbox'], {
      default: 'sandbox',
      description: 'Messages from a sandbox are never delivered to real recipients.',
    }),
  },
  { $id: 'CreateEnvironment', title: 'CreateEnvironment' },
);
export const UpdateEnvironment = strictObject(
  { name: Type.Optional(name), slug: Type.Optional(slug) },
  { $id: 'UpdateEnvironment', title: 'UpdateEnvironment' },
);
export const TransferOwnership = strictObject(
  { user_id: id('The member who becomes the owner (usr_…).') },
  { $id: 'TransferOwnership', title: 'TransferOwnership' },
);

export function presentOrganization(organization: Organization): Static<typeof OrganizationRecord> {
  const { id, name, slug, status, tier, createdAt, updatedAt } = organization;
  return {
    object: 'organization',
    id,
    name,
    slug,
    status,
    tier,
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
  };
}

export function presentEnvironment(environment: Environment): Static<typeof EnvironmentRecord> {
  const { id, name, slug, kind, status, createdAt, updatedAt } = environment;
  return {
    object: 'environment',
    id,
    name,
    slug,
    kind,
    status,
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
  };
}
