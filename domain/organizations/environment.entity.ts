import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, primaryId, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { OrganizationEntity } from './organization.entity.ts';
import { toSlug } from './slug.ts';

/** An isolated part of an organization. Messages sent in a `sandbox` go to the simulator and never leave the service. */
export const EnvironmentEntity = defineEntity({
  name: 'Environment',
  tableName: 'environments',
  policies: tenantPolicies({ lookup: true, people: true, staff: true }),
  uniques: [{ properties: ['organizationId', 'name'] }, { properties: ['organizationId', 'slug'] }],
  triggers: [
    functionTrigger({
      name: 'signal_environments_access',
      table: 'environments',
      event: 'update',
      when: 'old.status is distinct from new.status',
      calls: 'signal_access',
    }),
    functionTrigger({
      name: 'signal_environments_access_end',
      table: 'environments',
      event: 'delete',
      calls: 'signal_access',
    }),
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    name: p.text(),
    /** `production`: the default environment of the organization's keys and sessions, which always exists. */
    slug: p.text().onCreate(({ name }) => toSlug(name)),
    kind: p.text().$type<'production' | 'sandbox'>(),
    status: p.text().$type<'active' | 'suspended'>().default('active'),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export const DEFAULT_ENVIRONMENT_SLUG = 'production';

export type Environment = InferEntity<typeof EnvironmentEntity>;
