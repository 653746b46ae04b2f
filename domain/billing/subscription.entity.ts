import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Tier } from '../organizations/tier.ts';

/** The organization's customer at Stripe. The row is locked while one of its subscriptions changes. */
export const BillingCustomerEntity = defineEntity({
  name: 'BillingCustomer',
  tableName: 'billing_customers',
  policies: tenantPolicies({ staff: true }),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().primary().fieldName('org_id').deleteRule('cascade'),
    /** `cus_…`; replaced if it was deleted at Stripe. */
    customerId: idColumn().unique(),
    /**
     * The tier that the subscriptions last gave the organization; null if they give none. A tier that staff have set
     * since then stays until the subscriptions give a different one.
     */
    appliedTier: p.text().$type<Tier>().strictNullable(),
    /** The last checkout session (`cs_…`), reused while it is open; null before the first. */
    checkoutSessionId: idColumn().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type BillingCustomer = InferEntity<typeof BillingCustomerEntity>;

/** A subscription as last read from Stripe. An event only triggers another read. */
export const BillingSubscriptionEntity = defineEntity({
  name: 'BillingSubscription',
  tableName: 'billing_subscriptions',
  policies: tenantPolicies({ people: true, staff: true }),
  indexes: [
    { properties: ['organizationId', 'id'] },
    {
      name: 'billing_subscriptions_requested_index',
      expression: `create index "billing_subscriptions_requested_index" on "billing_subscriptions" ("requested_at") where "requested_at" is not null`,
    },
    {
      name: 'billing_subscriptions_problem_index',
      expression: `create index "billing_subscriptions_problem_index" on "billing_subscriptions" ("synced_at") where "problem" is not null and "ended_at" is null`,
    },
    {
      name: 'billing_subscriptions_open_index',
      expression: `create index "billing_subscriptions_open_index" on "billing_subscriptions" ("synced_at") where "ended_at" is null`,
    },
  ],
  properties: {
    /** Stripe's id (`sub_…`). */
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** Stripe's status. Null until the first read, like the fields below. Stripe may add new statuses. */
    status: p.text().strictNullable(),
    priceId: idColumn().strictNullable(),
    /** Tier of the price; null if the price belongs to no tier. */
    tier: p.text().$type<Tier>().strictNullable(),
    currentPeriodEnd: timestamp().strictNullable(),
    /** When the subscription ends, if its cancellation is scheduled. */
    cancelAt: timestamp().strictNullable(),
    /** The tier from the next period on, if a change is scheduled. */
    scheduledTier: p.text().$type<Tier>().strictNullable(),
    /** The oldest unpaid invoice (`in_…`) and the page on which to pay it. */
    openInvoiceId: idColumn().strictNullable(),
    openInvoiceUrl: p.text().strictNullable(),
    /** When Stripe next tries to collect the invoice; null if it no longer does. */
    nextAttemptAt: timestamp().strictNullable(),
    /** Null until it ends. */
    endedAt: timestamp().strictNullable(),
    /**
     * A problem that an operator has to resolve. Until then the subscription does not change the tier, unless the problem
     * is that a second subscription is paid.
     */
    problem: p.text().strictNullable(),
    /** Number of reads begun. Only the answer to the latest read is applied. */
    readVersion: p.integer().default(0),
    /** When an event requested a read; null if none is due. */
    requestedAt: timestamp().strictNullable(),
    syncedAt: timestamp().strictNullable(),
    /** When the reconciler last checked the run. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type BillingSubscription = InferEntity<typeof BillingSubscriptionEntity>;

/** An event that Stripe has delivered. It takes effect once, and only triggers a read. */
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
