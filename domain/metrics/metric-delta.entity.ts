import { defineEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { countColumns } from './metric-columns.ts';

/**
 * What a change of a message adds to the counts. Written by triggers on `messages` in the transaction of the change,
 * and added to `metric_hours` by the next sweep. Inserting takes no lock on a shared row, so concurrent sends of one
 * inbox do not wait for each other.
 */
export const MetricDeltaEntity = defineEntity({
  name: 'MetricDelta',
  tableName: 'metric_deltas',
  policies: tenantPolicies(),
  indexes: [{ properties: ['environmentId', 'hour'] }],
  properties: {
    id: p.bigint('number').primary().autoincrement(),
    /** No foreign keys: they would be checked for every message. Deltas of deleted inboxes are dropped by the sweep. */
    organizationId: idColumn().fieldName('org_id'),
    environmentId: idColumn().fieldName('env_id'),
    inboxId: idColumn(),
    hour: timestamp(),
    ...countColumns(),
  },
});
