import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** How much an organization may send, and has sent, from the shared domain on its latest day of sending. */
export const SharedDomainCapEntity = defineEntity({
  name: 'SharedDomainCap',
  tableName: 'shared_domain_caps',
  policies: tenantPolicies(),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    /** UTC. */
    day: p.date(),
    recipients: p.integer(),
    /** Recipients allowed on that day. */
    cap: p.integer(),
  },
});

export type SharedDomainCap = InferEntity<typeof SharedDomainCapEntity>;
