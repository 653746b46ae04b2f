import { defineEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { UsageCounter } from './counters.ts';

/** How much a counter changed within an hour (UTC). Source of the ledger's hourly sums and of the daily history. */
export const UsageHourEntity = defineEntity({
  name: 'UsageHour',
  tableName: 'usage_hours',
  policies: tenantPolicies({ staff: true }),
  indexes: [{ properties: ['organizationId', 'hour'] }, { properties: ['hour'] }],
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    counter: p.text().$type<UsageCounter>().primary(),
    hour: timestamp().primary(),
    amount: p.bigint('number'),
  },
});
