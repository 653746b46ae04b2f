import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { UsageCounter } from './counters.ts';

/**
 * What a counter stands at, but for the deltas that are not folded in yet (`usage-delta.entity.ts`). A row for each
 * month; `storage_bytes`, a level, has one, of 1970.
 */
export const UsageCounterEntity = defineEntity({
  name: 'UsageCounter',
  tableName: 'usage_counters',
  policies: tenantPolicies({ lookup: true }),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    counter: p.text().$type<UsageCounter>().primary(),
    periodStart: timestamp().primary(),
    amount: p.bigint('number'),
  },
});

export type UsageCounterRow = InferEntity<typeof UsageCounterEntity>;
