import { defineEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { countColumns } from './metric-columns.ts';

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
