import { defineEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';

/**
 * A slug that an organization has given up, by a change or with its purge. Written only by the trigger `claim_slug`. It
 * stays reserved for the organization for 90 days: links for signing in contain it.
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
