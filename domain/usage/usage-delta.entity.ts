import { defineEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import type { UsageCounter } from './counters.ts';

/**
 * A change of a counter that is not applied to it yet. Writers only insert rows, so they never wait for each other;
 * readers of a counter add its deltas. There is no foreign key, because deleting an organization writes deltas after
 * the organization's row is gone.
 */
export const UsageDeltaEntity = defineEntity({
  name: 'UsageDelta',
  tableName: 'usage_deltas',
  policies: tenantPolicies({ lookup: true, staff: true }),
  indexes: [{ properties: ['organizationId', 'counter'] }],
  properties: {
    id: p.bigint('number').primary().autoincrement(),
    organizationId: idColumn().fieldName('org_id'),
    counter: p.text().$type<UsageCounter>(),
    /** When it happened; determines the month. */
    at: timestamp(),
    amount: p.bigint('number'),
  },
});
