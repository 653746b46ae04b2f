import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { MeteredCounter } from './metered-counters.ts';

/** A counter whose use beyond the tier's limit is reported to Stripe, because the subscription has a metered price for it. */
export const BillingMeterEntity = defineEntity({
  name: 'BillingMeter',
  tableName: 'billing_meters',
  policies: tenantPolicies({ staff: true }),
  indexes: [{ properties: ['organizationId'] }, { properties: ['settledUntil'] }],
  properties: {
    subscriptionId: idColumn().primary(),
    counter: p.text().$type<MeteredCounter>().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    customerId: idColumn(),
    priceId: idColumn(),
    /** The meter at Stripe (`mtr_…`). The next fields are the name of its events, and the event fields that it reads. */
    meterId: idColumn(),
    eventName: p.text(),
    customerField: p.text(),
    valueField: p.text(),
    /** Start of an hour (UTC). Earlier use has been reported or is not billed. */
    settledUntil: timestamp(),
    /** Highest amount of the counter in the month of the last settled hour; null before the first one. */
    highestAmount: p.bigint('number').strictNullable(),
    /** When the subscription ended or lost the price; null before. */
    endedAt: timestamp().strictNullable(),
  },
});

export type BillingMeter = InferEntity<typeof BillingMeterEntity>;

/**
 * The use of an hour beyond the limit, reported to Stripe. The row is written before the report is sent, so that a retry
 * sends the same amount.
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
    /** Identifies organization, counter and hour, because Stripe counts an identifier only once. */
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    subscriptionId: idColumn(),
    counter: p.text().$type<MeteredCounter>(),
    /** Start of the hour of the use. */
    windowStart: timestamp(),
    units: p.bigint('number'),
    createdAt: createdAt(),
    /** When it was first sent; null before. */
    sentAt: timestamp().strictNullable(),
    /** When Stripe accepted it. */
    reportedAt: timestamp().strictNullable(),
    /** When and why reporting was given up; otherwise null. */
    refusedAt: timestamp().strictNullable(),
    refusal: p.text().strictNullable(),
  },
});

export type MeterReport = InferEntity<typeof MeterReportEntity>;
