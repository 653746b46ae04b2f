import { sql } from 'kysely';
import type Stripe from 'stripe';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database, TenantScope } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { callStripe } from '../../platform/stripe/stripe-client.ts';
import { organizationDeleted } from '../identity/authentication.ts';
import type { Tier } from '../organizations/tier.ts';
import { BillingCustomerEntity } from './billing-customer.entity.ts';
import { BillingSubscriptionEntity } from './billing-subscription.entity.ts';
import { findCountingSubscription } from './counting-subscription.ts';
import { METERED_COUNTERS, type MeteredCounter } from './metered-counters.ts';
import { PaymentGraceEntity } from './payment-grace.entity.ts';

/** What the service knows of an organization's billing, as read back from Stripe last. */
export interface BillingState {
  tier: Tier;
  customer: RowOf<typeof BillingCustomerEntity> | undefined;
  /** The one that gives the tier, or else the newest that has not ended, or else the last one. */
  subscription: RowOf<typeof BillingSubscriptionEntity> | undefined;
  /** Undefined while no payment is overdue. */
  grace: RowOf<typeof PaymentGraceEntity> | undefined;
  /** Counters of which use beyond the limit is billed. */
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
 * The organization's customer at Stripe, created on first use. A crash in between leaves no second one: Stripe answers the
 * repeated request with the first.
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
  return database.transaction(scope, async ({ db }) => {
    const open = await db
      .selectFrom('organizations')
      .select('id')
      .where('id', '=', organizationId)
      .where('deleted_at', 'is', null)
      .forShare()
      .executeTakeFirst();
    if (!open) throw organizationDeleted(organizationId);
    const saved = await db
      .updateTable('billing_customers')
      .set({ checkout_session_id: sessionId, updated_at: sql`now()` })
      .where('org_id', '=', organizationId)
      .where('checkout_session_id', 'is not distinct from', previous)
      .returning('org_id')
      .executeTakeFirst();
    if (saved) return sessionId;
    const customer = await db
      .selectFrom('billing_customers')
      .select('checkout_session_id as sessionId')
      .where('org_id', '=', organizationId)
      .executeTakeFirst();
    return customer?.sessionId ?? null;
  });
}
