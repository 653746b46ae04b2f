import type Stripe from 'stripe';
import type { RowOf } from '../../platform/database/columns-of.ts';
import type { Database, TenantScope } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { callStripe, isMissing } from '../../platform/stripe/stripe-client.ts';
import type { AuditAction } from '../audit/audit-actions.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import type { Tier } from '../organizations/tier.ts';
import { readUsageStatuses } from '../usage/usage-status.ts';
import { type BillingState, ensureCustomer, readBilling } from './billing-state.ts';
import { openCheckout } from './checkout-sessions.ts';
import {
  changePrice,
  findPlanWarnings,
  type PlanTiming,
  type PlanWarning,
  type ProrationPreview,
  previewPrice,
  requireRecentPreview,
} from './plan-change.ts';
import { isHigherTier, type Prices } from './prices.ts';
import { findLicensedItems } from './read-subscription.ts';
import type { Redirects } from './redirects.ts';
import type { BillingSubscriptionEntity } from './subscription.entity.ts';

export interface CheckoutRequest {
  tier: Tier;
  /** Where Stripe sends people who have paid, and people who cancel. Default: the billing page. */
  successUrl?: string | undefined;
  cancelUrl?: string | undefined;
}

export interface PlanChangeRequest {
  tier: Tier;
  /** Default: `now`. */
  when?: PlanTiming | undefined;
  /** Only computes the cost of the change. */
  preview?: boolean | undefined;
  /** Seconds since 1970, from a preview of the last hour, so that the change costs what the preview showed. */
  prorationDate?: number | undefined;
}

export interface PlanChange {
  /** `payment_required`: takes effect once the owners have paid the invoice in the portal. */
  status: 'preview' | 'accepted' | 'payment_required';
  tier: Tier;
  when: PlanTiming;
  /** Null for a change at the end of the period, which costs nothing now. */
  proration: ProrationPreview | null;
  warnings: PlanWarning[];
}

/** `never` revokes a cancellation for the end of the period. */
export type CancelTiming = 'now' | 'period_end' | 'never';

export interface BillingServiceOptions {
  database: Database;
  stripe: Stripe;
  prices: Prices;
  redirects: Redirects;
  publicUrl: string;
}

export type BillingService = ReturnType<typeof createBillingService>;

/**
 * Changes of the subscription by owners. Nothing here changes the tier, which follows Stripe's events. Every method throws
 * `unavailable` if Stripe does not answer, and then has changed nothing.
 */
export function createBillingService(options: BillingServiceOptions) {
  const { database, stripe, prices, redirects, publicUrl } = options;
  const billingPage = (scope: TenantScope) => `${publicUrl}/billing?org=${scope.organizationId}`;

  const portal = async (customer: string, returnUrl: string) => {
    try {
      const { url } = await callStripe(() =>
        stripe.billingPortal.sessions.create({ customer, return_url: returnUrl }),
      );
      return { url };
    } catch (error) {
      if (isMissing(error)) throw noCustomer();
      throw error;
    }
  };

  /** @throws AppError `conflict`, with the link of the portal, if a subscription has not ended. */
  async function refuseSecond(scope: TenantScope, customer: string): Promise<void> {
    // Asks Stripe instead of reading the rows, because the event of a recent checkout may not have arrived.
    const { data } = await callStripe(() =>
      stripe.subscriptions.list({ customer, status: 'all', limit: 100 }),
    );
    const open = data.find(({ status }) => status !== 'canceled' && status !== 'incomplete_expired');
    if (!open) return;
    const { url } = await portal(customer, billingPage(scope));
    throw new AppError('conflict', {
      detail: `The organization already has a subscription, which is ${open.status.replaceAll('_', ' ')}.`,
      fix: 'Change or pay it in the payment portal: POST /billing/portal, whose link is portal_url.',
      extensions: { portal_url: url, subscription_status: open.status },
    });
  }

  async function startCheckout(
    scope: TenantScope,
    {
      tier,
      successUrl = `${billingPage(scope)}&notice=payment-under-way`,
      cancelUrl = billingPage(scope),
    }: CheckoutRequest,
  ): Promise<{ id: string; url: string }> {
    const details = {
      price: requirePrice(prices, tier),
      meteredPrices: prices.metered.forSale,
      tier,
      successUrl: redirects.check('/body/success_url', successUrl),
      cancelUrl: redirects.check('/body/cancel_url', cancelUrl),
    };
    const { customer, subscription } = await readBilling(database, scope);
    const open = async (customerId: string) => {
      await refuseSecond(scope, customerId);
      return openCheckout(options, scope, {
        ...details,
        customerId,
        previous: customer?.checkoutSessionId ?? null,
        previousSubscription: subscription?.id ?? null,
      });
    };
    const customerId = await ensureCustomer(options, scope, { current: customer });
    try {
      return await open(customerId);
    } catch (error) {
      if (!isMissing(error)) throw error;
      return open(await ensureCustomer(options, scope, { current: customer, replaced: customerId }));
    }
  }

  async function requireOpen(scope: Scope): Promise<RowOf<typeof BillingSubscriptionEntity>> {
    requireOrganizationWide(scope);
    const { subscription } = await readBilling(database, scope);
    if (!subscription || subscription.endedAt) throw noSubscription();
    return subscription;
  }

  const audit = (scope: Scope, action: AuditAction, resourceId: string, details: Record<string, unknown>) =>
    database.transaction(scope, ({ db }) =>
      recordAudit(db, scope, { action, resourceType: 'subscription', resourceId, details }),
    );

  return {
    tiersForSale: prices.tiersForSale,

    async getState(scope: Scope): Promise<BillingState> {
      requireOrganizationWide(scope);
      return readBilling(database, scope);
    },

    /**
     * Returns Stripe's page for paying the subscription; an open one is reused.
     *
     * @throws AppError `conflict`, with the portal's link, while a subscription has not ended; `unprocessable` for a tier
     * that is not for sale; `validation_error` for a redirect URL that is not allowed.
     */
    async checkout(scope: Scope, request: CheckoutRequest): Promise<{ id: string; url: string }> {
      requireOrganizationWide(scope);
      return startCheckout(scope, request);
    },

    /**
     * Returns the page on which the owners pay for the tier, for staff to pass on: a checkout or, if there is a
     * subscription, the billing page, where they change its plan.
     *
     * @throws AppError as `checkout`; `organization_deleted`.
     */
    async findPaymentPage(tenant: TenantScope, tier: Tier): Promise<string> {
      try {
        return (await startCheckout(tenant, { tier })).url;
      } catch (error) {
        const hasSubscription = error instanceof AppError && 'subscription_status' in error.extensions;
        if (!hasSubscription) throw error;
        return billingPage(tenant);
      }
    },

    /** Returns Stripe's page for payment methods and invoices. @throws AppError `conflict` before the first checkout. */
    async openPortal(scope: Scope, returnUrl: string | undefined): Promise<{ url: string }> {
      requireOrganizationWide(scope);
      const target =
        returnUrl === undefined ? billingPage(scope) : redirects.check('/body/return_url', returnUrl);
      const { customer } = await readBilling(database, scope);
      if (!customer) throw noCustomer();
      return portal(customer.customerId, target);
    },

    /**
     * @throws AppError `conflict` without a subscription, or while its payment is overdue; `validation_error` for a date
     * without a recent preview.
     */
    async changePlan(
      scope: Scope,
      { tier, when = 'now', preview = false, prorationDate }: PlanChangeRequest,
    ): Promise<PlanChange> {
      const price = requirePrice(prices, tier);
      if (prorationDate !== undefined) requireRecentPreview(prorationDate);
      const subscription = await requireOpen(scope);
      if (subscription.status !== 'active' && subscription.status !== 'trialing')
        throw notInGoodStanding(subscription);
      if (subscription.tier === tier && subscription.scheduledTier === null) throw sameTier(tier);
      const change = { subscriptionId: subscription.id, price, when, prorationDate };
      const isUpgrade = subscription.tier === null || isHigherTier(tier, subscription.tier);
      const warnings = await database.read(scope, async ({ db }) =>
        findPlanWarnings(
          tier,
          await readUsageStatuses(db, { organizationIds: [scope.organizationId], at: new Date() }),
        ),
      );
      const proration = when === 'now' ? await previewPrice(stripe, { ...change, isUpgrade }) : null;
      if (preview) return { status: 'preview', tier, when, proration, warnings };
      const isPaid = await changePrice(stripe, {
        ...change,
        prorationDate: prorationDate ?? proration?.prorationDate,
        isUpgrade,
      });
      await audit(scope, 'subscription.plan_changed', subscription.id, {
        from: subscription.tier,
        to: tier,
        when,
      });
      return { status: isPaid ? 'accepted' : 'payment_required', tier, when, proration, warnings };
    },

    /** Can be repeated. @throws AppError `conflict` without a subscription. */
    async cancel(scope: Scope, when: CancelTiming): Promise<{ cancelAt: Date | null; isEnded: boolean }> {
      const { id } = await requireOpen(scope);
      const canceled = await callStripe(() => cancelAtStripe(stripe, id, when));
      await audit(scope, 'subscription.cancellation_changed', id, { when });
      const [item] = findLicensedItems(canceled);
      const periodEnd = item?.current_period_end;
      const cancelAt = canceled.cancel_at ?? (canceled.cancel_at_period_end ? periodEnd : null);
      return {
        cancelAt: cancelAt ? new Date(cancelAt * 1_000) : null,
        isEnded: canceled.status === 'canceled',
      };
    },
  };
}

async function cancelAtStripe(stripe: Stripe, id: string, when: CancelTiming): Promise<Stripe.Subscription> {
  const current = await stripe.subscriptions.retrieve(id);
  if (current.status === 'canceled') return current;
  // A plan change for a later time creates a schedule, and Stripe refuses other changes while it exists.
  if (current.schedule)
    await stripe.subscriptionSchedules.release(
      typeof current.schedule === 'string' ? current.schedule : current.schedule.id,
    );
  return when === 'now'
    ? stripe.subscriptions.cancel(id)
    : stripe.subscriptions.update(id, { cancel_at_period_end: when === 'period_end' });
}

function requirePrice(prices: Prices, tier: Tier): string {
  const price = prices.priceOf(tier);
  if (price !== undefined) return price;
  throw new AppError('unprocessable', {
    detail: `The tier ${tier} is not for sale.`,
    fix:
      tier === 'free'
        ? 'Cancel the subscription to stop paying: POST /billing/subscription/cancel.'
        : `Choose one of: ${prices.tiersForSale.join(', ')}.`,
  });
}

function noCustomer(): AppError {
  return new AppError('conflict', {
    detail: 'The organization has no customer at Stripe.',
    fix: 'Subscribe to a plan first: POST /billing/checkout.',
  });
}

function noSubscription(): AppError {
  return new AppError('conflict', {
    detail: 'The organization has no subscription.',
    fix: 'Subscribe to a plan first: POST /billing/checkout.',
  });
}

function notInGoodStanding({ status }: RowOf<typeof BillingSubscriptionEntity>): AppError {
  return new AppError('conflict', {
    detail: `The subscription is ${status?.replaceAll('_', ' ') ?? 'unknown'}.`,
    fix: 'Pay its open invoice first: POST /billing/portal.',
    extensions: { subscription_status: status ?? 'unknown' },
  });
}

function sameTier(tier: Tier): AppError {
  return new AppError('conflict', {
    detail: `The subscription is already for the tier ${tier}.`,
    fix: 'Nothing is left to do.',
  });
}
