import type Stripe from 'stripe';
import { AppError, invalid } from '../../platform/errors.ts';
import { callStripe, isMissing } from '../../platform/stripe/stripe-client.ts';
import type { Tier } from '../organizations/tier.ts';
import { TIER_LIMITS } from '../usage/tiers.ts';
import type { UsageStatus } from '../usage/usage-status.ts';
import { findLicensedItems } from './read-subscription.ts';

export type PlanTiming = 'now' | 'period_end';

export interface PriceChange {
  subscriptionId: string;
  price: string;
  when: PlanTiming;
  /** Seconds since 1970. */
  prorationDate?: number | undefined;
  isUpgrade: boolean;
}

export interface ProrationPreview {
  /** Amount due with the change, in the currency's smallest unit. A downgrade is credited to the next invoice. */
  amountDue: number;
  currency: string;
  prorationDate: number;
  lines: { description: string; amount: number }[];
}

const MAX_LINES = 50;

/** Computes the present cost of the change. */
export async function previewPrice(
  stripe: Stripe,
  { subscriptionId, price, prorationDate = Math.floor(Date.now() / 1_000), isUpgrade }: PriceChange,
): Promise<ProrationPreview> {
  const { item } = await readItem(stripe, subscriptionId);
  const invoice = await callStripe(() =>
    stripe.invoices.createPreview({
      subscription: subscriptionId,
      subscription_details: {
        items: [{ id: item.id, price }],
        proration_behavior: prorationOf(isUpgrade),
        proration_date: prorationDate,
      },
    }),
  );
  return {
    amountDue: invoice.amount_due,
    currency: invoice.currency,
    prorationDate,
    lines: invoice.lines.data
      .slice(0, MAX_LINES)
      .map(({ description, amount }) => ({ description: description ?? '', amount })),
  };
}

/**
 * Changes the subscription at Stripe. An upgrade is paid at once and takes effect only if the payment succeeds. A
 * downgrade is credited, or takes effect at the end of the period.
 *
 * @returns false if the payment has to be confirmed first.
 */
export async function changePrice(stripe: Stripe, change: PriceChange): Promise<boolean> {
  const { subscriptionId, price, when, prorationDate, isUpgrade } = change;
  const { subscription, item } = await readItem(stripe, subscriptionId);
  const scheduleId =
    typeof subscription.schedule === 'string' ? subscription.schedule : subscription.schedule?.id;
  if (when === 'period_end') {
    await schedulePrice(stripe, { subscription, item, price, scheduleId });
    return true;
  }
  if (scheduleId) await callStripe(() => stripe.subscriptionSchedules.release(scheduleId));
  if (item.price.id === price) return true;
  const changed = await callStripe(() =>
    stripe.subscriptions.update(subscriptionId, {
      items: [{ id: item.id, price }],
      proration_behavior: prorationOf(isUpgrade),
      ...(prorationDate === undefined ? {} : { proration_date: prorationDate }),
      // Otherwise a declined card would leave the subscription past due for a plan that was never paid.
      ...(isUpgrade ? { payment_behavior: 'pending_if_incomplete' as const } : {}),
    }),
  );
  return !changed.pending_update;
}

const prorationOf = (isUpgrade: boolean) =>
  (isUpgrade ? 'always_invoice' : 'create_prorations') as 'always_invoice' | 'create_prorations';

/** A failure between the two calls leaves a schedule without a second phase, which changes nothing. */
async function schedulePrice(
  stripe: Stripe,
  {
    subscription,
    item,
    price,
    scheduleId,
  }: {
    subscription: Stripe.Subscription;
    item: Stripe.SubscriptionItem;
    price: string;
    scheduleId: string | undefined;
  },
): Promise<void> {
  // Metered prices stay. They have no quantity.
  const metered = subscription.items.data
    .filter(({ id }) => id !== item.id)
    .map((other) => ({ price: other.price.id }));
  const id =
    scheduleId ??
    (await callStripe(() => stripe.subscriptionSchedules.create({ from_subscription: subscription.id }))).id;
  await callStripe(() =>
    stripe.subscriptionSchedules.update(id, {
      end_behavior: 'release',
      phases: [
        {
          items: [{ price: item.price.id, quantity: 1 }, ...metered],
          start_date: item.current_period_start,
          end_date: item.current_period_end,
        },
        { items: [{ price, quantity: 1 }, ...metered] },
      ],
    }),
  );
}

async function readItem(
  stripe: Stripe,
  subscriptionId: string,
): Promise<{ subscription: Stripe.Subscription; item: Stripe.SubscriptionItem }> {
  const subscription = await callStripe(() => stripe.subscriptions.retrieve(subscriptionId)).catch(
    (error: unknown) => {
      throw isMissing(error) ? unusable('Stripe has no such subscription.') : error;
    },
  );
  const [item, ...others] = findLicensedItems(subscription);
  if (!item || others.length > 0) throw unusable('The subscription has several prices.');
  return { subscription, item };
}

function unusable(detail: string): AppError {
  return new AppError('conflict', { detail, fix: 'Contact support: the subscription was changed by hand.' });
}

/** How long a preview is valid. */
const PREVIEW_SECONDS = 3_600;
/** Allowed difference between the clocks of two servers. */
const CLOCK_SKEW_SECONDS = 60;

/**
 * Without this check a caller could choose the date: Stripe charges for an upgrade from any later day and credits a
 * downgrade from any earlier day.
 */
export function requireRecentPreview(prorationDate: number): void {
  const ageSeconds = Date.now() / 1_000 - prorationDate;
  if (ageSeconds <= PREVIEW_SECONDS && ageSeconds >= -CLOCK_SKEW_SECONDS) return;
  throw invalid(
    '/body/proration_date',
    'is not the date of a preview of the last hour',
    'Preview the change again ({"preview": true}), or leave it out.',
  );
}

/** A counter whose use is above the limit of a tier. */
export interface PlanWarning {
  counter: string;
  current: number;
  limit: number;
}

/** Finds the counters that would be above the limits of the tier. The change is still allowed, because the owners decide. */
export function findPlanWarnings(tier: Tier, counters: readonly UsageStatus[]): PlanWarning[] {
  return counters.flatMap(({ counter, current }) => {
    const limit = TIER_LIMITS[tier].limits[counter];
    return limit !== null && current > limit ? [{ counter, current, limit }] : [];
  });
}
