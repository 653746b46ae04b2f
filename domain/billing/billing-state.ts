import { sql } from 'kysely';
import type Stripe from 'stripe';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database, TenantScope } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { callStripe } from '../../platform/stripe/stripe-client.ts';
import type { Tier } from '../organizations/tier.ts';
import { METERED_COUNTERS, type MeteredCounter } from './metered-counters.ts';
import { PaymentGraceEntity } from './payment-grace.entity.ts';
import { BillingCustomerEntity, BillingSubscriptionEntity } from './subscription.entity.ts';
import { findCountingSubscription } from './subscription-status.ts';

/** An organization's billing, as last read from Stripe. */
export interface BillingState {
  tier: Tier;
  customer: RowOf<typeof BillingCustomerEntity> | undefined;
  /** The subscription that gives the tier; otherwise the newest that has not ended; otherwise the newest. */
  subscription: RowOf<typeof BillingSubscriptionEntity> | undefined;
  /** Undefined while no payment is overdue. */
  grace: RowOf<typeof PaymentGraceEntity> | undefined;
  /** Counters whose use beyond the limit is billed. */
  meteredCounters: MeteredCounter[];
}

export function readBilling(database: Database, scope: TenantScope): Promise<BillingState> {
  return database.read(scope, ({ db }) => readBillingState(db, scope.organizationId));
}

export async function readBillingState(db: Db, organizationId: string): Promise<BillingState> {
  const organization = await db
    .selectFrom('organizations')
    .select('tier')
    .where('id', '=', organizationId)
    .executeTakeFirst();
  const customer = await db
    .selectFrom('billing_customers')
    .select(columnsOf(BillingCustomerEntity))
    .where('org_id', '=', organizationId)
    .executeTakeFirst();
  const subscriptions = await db
    .selectFrom('billing_subscriptions')
    .select(columnsOf(BillingSubscriptionEntity))
    .where('org_id', '=', organizationId)
    .orderBy('created_at', 'desc')
    .limit(100)
    .execute();
  const grace = await db
    .selectFrom('payment_graces')
    .select(columnsOf(PaymentGraceEntity))
    .where('org_id', '=', organizationId)
    .where('closed_at', 'is', null)
    .orderBy('suspend_at')
    .limit(1)
    .executeTakeFirst();
  const meters = await db
    .selectFrom('billing_meters')
    .select('counter')
    .where('org_id', '=', organizationId)
    .where('ended_at', 'is', null)
    .execute();
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
 * Returns the organization's customer at Stripe, created on first use. A crash between the two steps creates no second
 * customer, because Stripe answers the repeated request with the first one.
 *
 * @param replaced the customer that was deleted at Stripe.
 */
export async function ensureCustomer(
  { database, stripe }: { database: Database; stripe: Stripe },
  scope: TenantScope,
  {
    current,
    replaced = null,
  }: { current: RowOf<typeof BillingCustomerEntity> | undefined; replaced?: string | null },
): Promise<string> {
  const { organizationId } = scope;
  if (current && current.customerId !== replaced) return current.customerId;
  const { id } = await callStripe(() =>
    stripe.customers.create(
      { metadata: { organization_id: organizationId } },
      { idempotencyKey: `customer/${organizationId}/${replaced ?? 'first'}` },
    ),
  );
  return database.transaction(scope, async ({ db }) => {
    const row = await db
      .insertInto('billing_customers')
      .values({ org_id: organizationId, customer_id: id })
      .onConflict((conflict) =>
        conflict.column('org_id').doUpdateSet({
          updated_at: sql`now()`,
          customer_id: sql`case when billing_customers.customer_id = ${replaced}
            then excluded.customer_id else billing_customers.customer_id end`,
        }),
      )
      .returning('customer_id as customerId')
      .executeTakeFirst();
    return row?.customerId ?? id;
  });
}
