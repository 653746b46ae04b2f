import { type Static, Type } from 'typebox';
import type { PlanChange } from '../../domain/billing/billing.service.ts';
import type { BillingState } from '../../domain/billing/billing-state.ts';
import { METERED_COUNTERS } from '../../domain/billing/metered-counters.ts';
import { TIERS, type Tier } from '../../domain/organizations/tier.ts';
import {
  enumOf,
  nullableText,
  nullableTimestamp,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

const MAX_URL_LENGTH = 2_048;
const url = (description: string) => text(MAX_URL_LENGTH, { description, minLength: 1 });
const amount = (description: string) => Type.Integer({ description });

export const StartCheckout = strictObject(
  {
    tier: enumOf(TIERS, { description: 'The tier to subscribe to.' }),
    success_url: Type.Optional(
      url(
        'Where Stripe sends people after the payment. It proves nothing: the tier follows Stripe’s event. Default: the billing page.',
      ),
    ),
    cancel_url: Type.Optional(url('Where Stripe sends people who turn back. Default: the billing page.')),
  },
  { $id: 'StartCheckout', title: 'StartCheckout' },
);

export const CheckoutSession = resource(
  'checkout_session',
  { id: text(128), url: text(MAX_URL_LENGTH, { description: 'Page of Stripe on which to pay.' }) },
  { $id: 'CheckoutSession', title: 'CheckoutSession' },
);

export const OpenPortal = strictObject(
  { return_url: Type.Optional(url('Where the portal leads back to. Default: the billing page.')) },
  { $id: 'OpenPortal', title: 'OpenPortal' },
);

export const PortalSession = resource(
  'portal_session',
  { url: text(MAX_URL_LENGTH, { description: 'Page of Stripe for payment methods and invoices.' }) },
  { $id: 'PortalSession', title: 'PortalSession' },
);

export const SubscriptionRecord = resource(
  'subscription',
  {
    id: nullableText(128, { description: 'Null without a subscription.' }),
    status: text(64, {
      description:
        'Stripe’s status: active, trialing, past_due, unpaid, incomplete, incomplete_expired, paused, canceled; `none` without a subscription.',
    }),
    tier: enumOf(TIERS, { description: 'The tier that the organization has now.' }),
    subscription_tier: Type.Unsafe<Tier | null>({
      type: ['string', 'null'],
      enum: [...TIERS, null],
      description: 'The tier that the subscription is for; null without one.',
    }),
    scheduled_tier: Type.Unsafe<Tier | null>({
      type: ['string', 'null'],
      enum: [...TIERS, null],
      description: 'The tier from the next period on; null if it stays.',
    }),
    current_period_end: nullableTimestamp('When it renews, or ends.'),
    cancel_at: nullableTimestamp('When it ends, if it was canceled.'),
    ended_at: nullableTimestamp('When it ended.'),
    open_invoice_url: nullableText(MAX_URL_LENGTH, {
      description: 'Page on which to pay an overdue invoice.',
    }),
    next_attempt_at: nullableTimestamp('When Stripe tries to collect it again.'),
    suspend_at: nullableTimestamp(
      'When the organization is suspended unless the invoice is paid; null if none is overdue.',
    ),
    suspended_since: nullableTimestamp('Since when it is suspended for the payment.'),
    metered_counters: Type.Array(enumOf(METERED_COUNTERS), {
      maxItems: METERED_COUNTERS.length,
      description: 'Counters of which the use beyond the limit of the tier is billed.',
    }),
    tiers_for_sale: Type.Array(enumOf(TIERS), { maxItems: TIERS.length }),
    updated_at: nullableTimestamp('When it was read back from Stripe.'),
  },
  { $id: 'Subscription', title: 'Subscription' },
);

export const ChangePlan = strictObject(
  {
    tier: enumOf(TIERS),
    when: Type.Optional(
      enumOf(['now', 'period_end'], {
        description:
          'now (default): an upgrade is paid at once, a downgrade is credited. period_end: nothing is due.',
      }),
    ),
    preview: Type.Optional(Type.Boolean({ description: 'Only computes what the change costs.' })),
    proration_date: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 4_102_444_800,
        description: 'From a preview of the last hour: the change then costs what the preview said.',
      }),
    ),
  },
  { $id: 'ChangePlan', title: 'ChangePlan' },
);

export const PlanChangeRecord = resource(
  'plan_change',
  {
    status: enumOf(['preview', 'accepted', 'payment_required'], {
      description:
        'accepted: the tier follows with Stripe’s event. payment_required: it follows once the invoice is paid in the portal.',
    }),
    tier: enumOf(TIERS),
    when: enumOf(['now', 'period_end']),
    proration: Type.Union([
      strictObject({
        amount_due: amount('Due now, in the smallest unit of the currency.'),
        currency: text(3),
        proration_date: amount('Seconds since 1970.'),
        lines: Type.Array(strictObject({ description: text(1_024), amount: amount('Negative: a credit.') }), {
          maxItems: 50,
        }),
      }),
      Type.Null(),
    ]),
    warnings: Type.Array(strictObject({ counter: text(64), current: Type.Number(), limit: Type.Number() }), {
      maxItems: 20,
      description:
        'Counters whose use is above the new limit. Webhook deliveries then wait; nothing is deleted.',
    }),
  },
  { $id: 'PlanChange', title: 'PlanChange' },
);

export const CancelSubscription = strictObject(
  {
    when: Type.Optional(
      enumOf(['now', 'period_end', 'never'], {
        description: 'Default: period_end. never: takes a cancellation for the end of the period back.',
      }),
    ),
  },
  { $id: 'CancelSubscription', title: 'CancelSubscription' },
);

export const CancellationRecord = resource(
  'cancellation',
  {
    status: enumOf(['canceled', 'ends', 'continues']),
    cancel_at: nullableTimestamp('When it ends, if that is later.'),
  },
  { $id: 'Cancellation', title: 'Cancellation' },
);

export const StripeEventAcknowledgment = resource(
  'acknowledgement',
  { result: enumOf(['accepted', 'duplicate', 'ignored']), received_at: timestamp() },
  { description: 'The event was taken.' },
);

export function presentSubscription(
  { tier, subscription, grace, meteredCounters }: BillingState,
  tiersForSale: readonly Tier[],
): Static<typeof SubscriptionRecord> {
  const time = (at: Date | null | undefined) => at?.toISOString() ?? null;
  return {
    object: 'subscription',
    id: subscription?.id ?? null,
    status: subscription?.status ?? 'none',
    tier,
    subscription_tier: subscription?.tier ?? null,
    scheduled_tier: subscription?.scheduledTier ?? null,
    current_period_end: time(subscription?.currentPeriodEnd),
    cancel_at: time(subscription?.cancelAt),
    ended_at: time(subscription?.endedAt),
    open_invoice_url: subscription?.openInvoiceUrl ?? null,
    next_attempt_at: time(subscription?.nextAttemptAt),
    suspend_at: grace?.status === 'waiting' ? time(grace.suspendAt) : null,
    suspended_since: time(grace?.suspendedAt),
    metered_counters: meteredCounters,
    tiers_for_sale: [...tiersForSale],
    updated_at: time(subscription?.syncedAt),
  };
}

export function presentPlanChange({ proration, ...change }: PlanChange): Static<typeof PlanChangeRecord> {
  return {
    object: 'plan_change',
    ...change,
    proration: proration && {
      amount_due: proration.amountDue,
      currency: proration.currency,
      proration_date: proration.prorationDate,
      lines: proration.lines,
    },
  };
}
