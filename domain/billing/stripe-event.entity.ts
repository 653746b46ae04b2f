import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** An event that Stripe has delivered. It takes effect once, and its content is not used. */
export const StripeEventEntity = defineEntity({
  name: 'StripeEvent',
  tableName: 'stripe_events',
  policies: tenantPolicies({ staff: true }),
  indexes: [{ properties: ['organizationId', 'id'] }, { properties: ['receivedAt'] }],
  properties: {
    /** Stripe's id (`evt_…`). */
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    type: p.text(),
    /** Null if it concerns no subscription. */
    subscriptionId: idColumn().strictNullable(),
    /** Stripe's time. */
    createdAt: timestamp(),
    receivedAt: timestamp(),
  },
});

export type StripeEvent = InferEntity<typeof StripeEventEntity>;
