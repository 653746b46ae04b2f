import { defineEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { UsageCounter } from './counters.ts';

/**
 * The value of a counter, without the deltas that are not applied yet (`usage-delta.entity.ts`). One row per month;
 * `storage_bytes`, a gauge, has a single row with the period 1970-01-01.
 */
export const UsageCounterEntity = defineEntity({
  name: 'UsageCounter',
  tableName: 'usage_counters',
  policies: tenantPolicies({ lookup: true, staff: true }),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    counter: p.text().$type<UsageCounter>().primary(),
    periodStart: timestamp().primary(),
    amount: p.bigint('number'),
  },
});
