import { defineEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { UsageCounter } from '../usage/counters.ts';

/** A threshold of which the owners were notified: one row per counter, threshold and month. */
export const UsageAlertEntity = defineEntity({
  name: 'UsageAlert',
  tableName: 'usage_alerts',
  policies: tenantPolicies(),
  indexes: [{ properties: ['periodStart'] }],
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    counter: p.text().$type<UsageCounter>().primary(),
    /** Percent of the limit. */
    threshold: p.smallint().primary(),
    periodStart: timestamp().primary(),
    createdAt: timestamp(),
  },
});
