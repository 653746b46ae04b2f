import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import {
  createdAt,
  idColumn,
  oneOf,
  primaryId,
  timestamp,
  updatedAt,
} from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { TIERS, type Tier } from './tier.ts';

/** The tenant. Suspension changes `status`. */
export const OrganizationEntity = defineEntity({
  name: 'Organization',
  tableName: 'organizations',
  policies: tenantPolicies({ column: 'id', lookup: true, people: true, staff: true }),
  triggers: [
    functionTrigger({
      name: 'signal_organizations_access',
      table: 'organizations',
      event: 'update',
      when: 'old.status is distinct from new.status or old.deleted_at is distinct from new.deleted_at',
      calls: 'signal_access',
    }),
    functionTrigger({ name: 'claim_slug', table: 'organizations', event: 'insert', calls: 'claim_slug' }),
    functionTrigger({
      name: 'claim_changed_slug',
      table: 'organizations',
      event: 'update',
      when: 'old.slug is distinct from new.slug',
      calls: 'claim_slug',
    }),
    functionTrigger({ name: 'release_slug', table: 'organizations', event: 'delete', calls: 'claim_slug' }),
  ],
  // Operators update this column with SQL.
  checks: [{ name: 'organizations_tier', expression: oneOf('tier', TIERS) }],
  properties: {
    id: primaryId(),
    name: p.text(),
    slug: p.text().unique(),
    status: p.text().$type<'active' | 'suspended'>().default('active'),
    /** Determines the organization's limits (`domain/usage/tiers.ts`). */
    tier: p.text().$type<Tier>().default('enterprise'),
    /** When the organization was closed; it can be recovered for 30 days. Its keys and sessions stop working. */
    deletedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type Organization = InferEntity<typeof OrganizationEntity>;

/**
 * A slug that an organization no longer uses, after a change or its purge. Written only by the trigger `claim_slug`. It
 * stays reserved for the organization for 90 days, because sign-in links contain it.
 */
export const ReleasedSlugEntity = defineEntity({
  name: 'ReleasedSlug',
  tableName: 'released_slugs',
  policies: tenantPolicies({ lookup: true, people: true }),
  indexes: [{ properties: ['organizationId'] }, { properties: ['releasedAt'] }],
  properties: {
    slug: p.text().primary(),
    organizationId: idColumn().fieldName('org_id'),
    releasedAt: timestamp(),
  },
});
