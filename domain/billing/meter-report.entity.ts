import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { MeteredCounter } from './metered-counters.ts';

/**
 * The use of an hour beyond the limit, for Stripe. The row is written before it is sent, so that a retry sends the same
 * amount.
 */
export const MeterReportEntity = defineEntity({
  name: 'MeterReport',
  tableName: 'meter_reports',
  policies: tenantPolicies({ staff: true }),
  checks: [{ name: 'meter_reports_positive', expression: 'units > 0' }],
  indexes: [
    { properties: ['organizationId', 'id'] },
    { properties: ['createdAt'] },
    {
      name: 'meter_reports_pending_index',
      expression: `create index "meter_reports_pending_index" on "meter_reports" ("window_start", "id") where "reported_at" is null and "refused_at" is null`,
    },
    {
      name: 'meter_reports_refused_index',
      expression: `create index "meter_reports_refused_index" on "meter_reports" ("refused_at") where "refused_at" is not null`,
    },
  ],
  properties: {
    /** Organization, counter and hour: Stripe counts an event with the same identifier once. */
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    subscriptionId: idColumn(),
    counter: p.text().$type<MeteredCounter>(),
    /** Start of the hour in which it was used. */
    windowStart: timestamp(),
    units: p.bigint('number'),
    createdAt: createdAt(),
    /** When it was first sent; null before. */
    sentAt: timestamp().strictNullable(),
    /** When Stripe accepted it. */
    reportedAt: timestamp().strictNullable(),
    /** When and why reporting was given up; null unless it was. */
    refusedAt: timestamp().strictNullable(),
    refusal: p.text().strictNullable(),
  },
});

export type MeterReport = InferEntity<typeof MeterReportEntity>;
