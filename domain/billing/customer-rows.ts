import { sql } from '@mikro-orm/core';
import type Stripe from 'stripe';
import type { Database, TenantScope } from '../../platform/database/database.ts';
import { findRow, findRows, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { callStripe } from '../../platform/stripe/stripe-client.ts';
import { organizationDeleted } from '../identity/authentication.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Tier } from '../organizations/tier.ts';
import { type BillingCustomer, BillingCustomerEntity } from './billing-customer.entity.ts';
import { BillingMeterEntity } from './billing-meter.entity.ts';
import { type BillingSubscription, BillingSubscriptionEntity } from './billing-subscription.entity.ts';
import { findCountingSubscription } from './counting-subscription.ts';
import { METERED_COUNTERS, type MeteredCounter } from './metered-counters.ts';
import { type PaymentGrace, PaymentGraceEntity } from './payment-grace.entity.ts';

/** What the service knows of an organization's billing, as read back from Stripe last. */
export interface BillingState {
  tier: Tier;
  customer: Row<BillingCustomer> | undefined;
  /** The one that gives the tier, or else the newest that has not ended, or else the last one. */
  subscription: Row<BillingSubscription> | undefined;
  /** Undefined while no payment is overdue. */
  grace: Row<PaymentGrace> | undefined;
  /** Counters of which use beyond the limit is billed. */
  meteredCounters: MeteredCounter[];
}

export function readBilling(database: Database, scope: TenantScope): Promise<BillingState> {
  return database.read(scope, (reader) => readBillingState(reader, scope.organizationId));
}

export async function readBillingState(reader: RowReader, organizationId: string): Promise<BillingState> {
  const organization = await findRow(reader, OrganizationEntity, { where: { id: organizationId } });
  const customer = await findRow(reader, BillingCustomerEntity, { where: { organizationId } });
  const subscriptions = await findRows(reader, BillingSubscriptionEntity, {
    where: { organizationId },
    orderBy: { createdAt: 'desc' },
    limit: 100,
  });
  const grace = await findRow(reader, PaymentGraceEntity, {
    where: { organizationId, closedAt: null },
    orderBy: { suspendAt: 'asc' },
  });
  const meters = await findRows(reader, BillingMeterEntity, { where: { organizationId, endedAt: null } });
  const read = subscriptions.filter(({ status }) => status !== null);
  return {
    tier: organization?.tier ?? 'free',
    customer,
    subscription: findCountingSubscription(read) ?? read.find(({ endedAt }) => endedAt === null) ?? read[0],
    grace,
    meteredCounters: METERED_COUNTERS.filter((counter) => meters.some((meter) => meter.counter === counter)),
  };
}

/**
 * The organization's customer at Stripe, created on first use. A crash in between leaves no second one: Stripe answers the
 * repeated request with the first.
 *
 * @param replaced the customer that was deleted at Stripe.
 */
export async function ensureCustomer(
  { database, stripe }: { database: Database; stripe: Stripe },
  scope: TenantScope,
  { current, replaced = null }: { current: Row<BillingCustomer> | undefined; replaced?: string | null },
): Promise<string> {
  const { organizationId } = scope;
  if (current && current.customerId !== replaced) return current.customerId;
  const { id } = await callStripe(() =>
    stripe.customers.create(
      { metadata: { organization_id: organizationId } },
      { idempotencyKey: `customer/${organizationId}/${replaced ?? 'first'}` },
    ),
  );
  return database.transaction(scope, async ({ em }) => {
    const [row] = await em.execute<{ customerId: string }[]>(sql`
      insert into billing_customers (org_id, customer_id, created_at, updated_at)
      values (${organizationId}, ${id}, now(), now())
      on conflict (org_id) do update set updated_at = now(), customer_id = case
        when billing_customers.customer_id = ${replaced} then excluded.customer_id else billing_customers.customer_id end
      returning customer_id as "customerId"`);
    return row?.customerId ?? id;
  });
}

/**
 * Saves the session, unless another one was saved since `previous` was read. A closing of the organization at the same time
 * waits for it, and then expires it.
 *
 * @returns the session that is saved.
 * @throws AppError `organization_deleted` if the organization was closed meanwhile.
 */
export function saveCheckoutSession(
  database: Database,
  scope: TenantScope,
  { sessionId, previous }: { sessionId: string; previous: string | null },
): Promise<string | null> {
  const { organizationId } = scope;
  return database.transaction(scope, async ({ em }) => {
    const open = await em.execute<object[]>(
      sql`select from organizations where id = ${organizationId} and deleted_at is null for share`,
    );
    if (open.length === 0) throw organizationDeleted(organizationId);
    const saved = await em.execute<object[]>(sql`
      update billing_customers set checkout_session_id = ${sessionId}, updated_at = now()
      where org_id = ${organizationId} and checkout_session_id is not distinct from ${previous} returning 1`);
    if (saved.length > 0) return sessionId;
    const customer = await findRow(em, BillingCustomerEntity, { where: { organizationId } });
    return customer?.checkoutSessionId ?? null;
  });
}
