import { defineEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { COUNT_COLUMNS, type CountColumn } from './metric-counts.ts';

const countColumn = () => p.integer().default(0);

/** An integer column for each of `COUNT_COLUMNS`, shared by hours and deltas. */
const countColumns = () =>
  Object.fromEntries(COUNT_COLUMNS.map((name) => [name, countColumn()])) as Record<
    CountColumn,
    ReturnType<typeof countColumn>
  >;

/**
 * Counts of a subject in an hour (UTC). Written only by `applyMetricDeltas`; newer changes are in `metric_deltas`.
 * Deleted messages stay counted.
 */
export const MetricHourEntity = defineEntity({
  name: 'MetricHour',
  tableName: 'metric_hours',
  policies: tenantPolicies(),
  properties: {
    environmentId: () =>
      p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').primary().deleteRule('cascade'),
    /** Empty: the whole environment; else an inbox id or a domain of inbox addresses. */
    subject: idColumn().primary(),
    hour: timestamp().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    ...countColumns(),
  },
});

/**
 * The counts that a change of a message adds. Written by triggers on `messages` in the transaction of the change, and added
 * to `metric_hours` by the next sweep. Inserting takes no lock on a shared row, so concurrent sends of one inbox do not wait
 * for each other.
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
