import type Stripe from 'stripe';
import { callStripe, isMissing } from '../../platform/stripe/stripe-client.ts';

/** The parts of a subscription at Stripe that this service uses. */
export interface SubscriptionView {
  id: string;
  /** One of Stripe's statuses; new ones may appear. */
  status: string;
  customerId: string;
  /** The only price that is not metered; null if there are several. */
  priceId: string | null;
  /** Its metered prices and their meters (`mtr_…`). */
  metered: { priceId: string; meterId: string }[];
  currentPeriodEnd: Date | null;
  cancelAt: Date | null;
  endedAt: Date | null;
  /** The price from the next period on; null if no change is scheduled. */
  scheduledPriceId: string | null;
  /** The oldest unpaid invoice; null if there is none. */
  openInvoice: OpenInvoice | null;
  /**
   * The time of the subscription's test clock, with which a grace can be tested in minutes; null without a test clock, as
   * always in live mode.
   */
  clock: Date | null;
}

export interface OpenInvoice {
  id: string;
  /** Stripe's page for paying the invoice. */
  url: string | null;
  /** Whether Stripe has tried to collect the invoice. */
  wasAttempted: boolean;
  nextAttemptAt: Date | null;
  amountDue: number;
  currency: string;
}

/** Final statuses. */
const ENDED = new Set(['canceled', 'incomplete_expired']);
const MAX_LISTED = 100;

/**
 * Reads the subscription and its open invoices. If it is `unpaid` although its open invoices have been paid, drafts that
 * came due meanwhile keep it from becoming active: they are finalized and collected, and everything is read again.
 *
 * @returns null if Stripe has no such subscription.
 */
export async function readSubscription(stripe: Stripe, id: string): Promise<SubscriptionView | null> {
  const view = await readOnce(stripe, id);
  if (view?.status !== 'unpaid' || view.openInvoice) return view;
  const drafts = await callStripe(() =>
    stripe.invoices.list({ subscription: id, status: 'draft', limit: MAX_LISTED }),
  );
  if (drafts.data.length === 0) return view;
  for (const draft of drafts.data.reverse()) await collect(stripe, draft.id);
  return readOnce(stripe, id);
}

async function readOnce(stripe: Stripe, id: string): Promise<SubscriptionView | null> {
  try {
    const subscription = await callStripe(() => stripe.subscriptions.retrieve(id, { expand: ['schedule'] }));
    const isOver = ENDED.has(subscription.status);
    const invoices = isOver
      ? []
      : (
          await callStripe(() =>
            stripe.invoices.list({ subscription: id, status: 'open', limit: MAX_LISTED }),
          )
        ).data;
    const view = toView(subscription, invoices);
    const clockId = idOf(subscription.test_clock);
    if (clockId === null) return view;
    const { frozen_time: time } = await callStripe(() => stripe.testHelpers.testClocks.retrieve(clockId));
    return { ...view, clock: toDate(time) };
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** If the card is declined, the invoice stays open, and the owners get its page. */
async function collect(stripe: Stripe, invoiceId: string): Promise<void> {
  await callStripe(() =>
    stripe.invoices.finalizeInvoice(
      invoiceId,
      { auto_advance: true },
      { idempotencyKey: `finalize/${invoiceId}` },
    ),
  );
  try {
    await callStripe(() => stripe.invoices.pay(invoiceId, {}, { idempotencyKey: `pay/${invoiceId}` }));
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'unprocessable') throw error;
  }
}

function toView(
  subscription: Stripe.Subscription,
  openInvoices: readonly Stripe.Invoice[],
): SubscriptionView {
  const [item, ...others] = findLicensedItems(subscription);
  const isOver = ENDED.has(subscription.status);
  const periodEnd = item?.current_period_end ?? null;
  return {
    id: subscription.id,
    status: subscription.status,
    customerId: idOf(subscription.customer) ?? '',
    priceId: others.length === 0 ? (item?.price.id ?? null) : null,
    metered: subscription.items.data.flatMap(({ price: { id, recurring } }) =>
      recurring?.meter ? [{ priceId: id, meterId: recurring.meter }] : [],
    ),
    currentPeriodEnd: toDate(periodEnd),
    cancelAt: isOver
      ? null
      : toDate(subscription.cancel_at ?? (subscription.cancel_at_period_end ? periodEnd : null)),
    endedAt: isOver ? (toDate(subscription.ended_at ?? subscription.canceled_at) ?? new Date()) : null,
    scheduledPriceId: isOver ? null : findScheduledPrice(subscription, item?.price.id),
    openInvoice: toOpenInvoice(openInvoices.at(-1)),
    clock: null,
  };
}

/** Items with a fixed price. Other items are billed by use and do not determine the tier. */
export const findLicensedItems = ({ items }: Stripe.Subscription): Stripe.SubscriptionItem[] =>
  items.data.filter(({ price }) => price.recurring?.usage_type !== 'metered');

/** The price of the phase that follows the current one. The item of the tier comes first. */
function findScheduledPrice({ schedule }: Stripe.Subscription, current: string | undefined): string | null {
  if (schedule === null || typeof schedule === 'string') return null;
  const currentEnd = schedule.current_phase?.end_date;
  const next = schedule.phases.find(({ start_date }) => start_date === currentEnd);
  const price = idOf(next?.items[0]?.price);
  return price === null || price === current ? null : price;
}

function toOpenInvoice(invoice: Stripe.Invoice | undefined): OpenInvoice | null {
  if (!invoice) return null;
  return {
    id: invoice.id,
    url: invoice.hosted_invoice_url ?? null,
    wasAttempted: invoice.attempted,
    nextAttemptAt: toDate(invoice.next_payment_attempt),
    amountDue: invoice.amount_due,
    currency: invoice.currency,
  };
}

const toDate = (seconds: number | null | undefined): Date | null =>
  seconds === null || seconds === undefined ? null : new Date(seconds * 1_000);

export const idOf = (reference: string | { id: string } | null | undefined): string | null =>
  typeof reference === 'string' ? reference : (reference?.id ?? null);
