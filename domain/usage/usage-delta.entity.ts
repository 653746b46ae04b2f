import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import type { UsageCounter } from './counters.ts';

/**
 * A change of a counter, until it is folded into it: writers only add rows, so none waits for another. Whoever reads a
 * counter adds what stands here. Without a foreign key, since what a deleted organization gives up is written after it.
 */
export const UsageDeltaEntity = defineEntity({
  name: 'UsageDelta',
  tableName: 'usage_deltas',
  policies: tenantPolicies({ lookup: true }),
  indexes: [{ properties: ['organizationId', 'counter'] }],
  properties: {
    id: p.bigint('string').primary().autoincrement(),
    organizationId: idColumn().fieldName('org_id'),
    counter: p.text().$type<UsageCounter>(),
    /** When it happened, which decides the month. */
    at: timestamp(),
    amount: p.bigint('number'),
  },
});

export type UsageDelta = InferEntity<typeof UsageDeltaEntity>;
