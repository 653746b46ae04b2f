import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
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
    /** The meter at Stripe (`mtr_…`), the name of its events, and the fields of an event that it reads. */
    meterId: idColumn(),
    eventName: p.text(),
    customerField: p.text(),
    valueField: p.text(),
    /** Start of an hour (UTC). Use before it has been reported, or is not billed. */
    settledUntil: timestamp(),
    /** Highest amount of the counter in the month of the last settled hour; null before the first one. */
    highestAmount: p.bigint('number').strictNullable(),
    /** When the subscription ended or lost the price; null while it has it. */
    endedAt: timestamp().strictNullable(),
  },
});

export type BillingMeter = InferEntity<typeof BillingMeterEntity>;
