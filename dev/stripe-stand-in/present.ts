import type { Invoice, Ledger, Schedule, Session, StripeEventRecord, Subscription } from './ledger.ts';
import { newStripeId } from './ledger.ts';

/** All subscriptions are on the ledger's clock. */
export const TEST_CLOCK_ID = 'clock_stand_in';

/** Objects as Stripe's API shows them. */
export function presentSubscription(
  ledger: Ledger,
  subscription: Subscription,
  expandSchedule = false,
): object {
  const { period, price, meteredPrices, pendingPrice, latestInvoice, schedule, ...rest } = subscription;
  const found = schedule === null ? undefined : ledger.schedules.get(schedule);
  return {
    ...rest,
    latest_invoice: latestInvoice,
    pending_update: pendingPrice === null ? null : { expires_at: ledger.now + 82_800 },
    schedule: expandSchedule && found ? presentSchedule(ledger, found) : schedule,
    items: {
      object: 'list',
      data: [
        { ...presentItem(ledger, subscription, price), quantity: 1 },
        ...meteredPrices.map((metered) => presentItem(ledger, subscription, metered)),
      ],
    },
    livemode: false,
    metadata: {},
    test_clock: TEST_CLOCK_ID,
  };
}

function presentItem(ledger: Ledger, { id, period }: Subscription, price: string): object {
  const { meter, ...rest } = ledger.prices.get(price) ?? {};
  return {
    id: meter ? `si_${id}_${price}` : `si_${id}`,
    object: 'subscription_item',
    current_period_start: period.start,
    current_period_end: period.end,
    price: {
      id: price,
      object: 'price',
      ...rest,
      recurring: {
        interval: 'month',
        usage_type: meter ? 'metered' : 'licensed',
        meter: meter ?? null,
      },
    },
  };
}

export function presentInvoice(ledger: Ledger, invoice: Invoice): object {
  const { subscription, purpose, ...rest } = invoice;
  return {
    ...rest,
    billing_reason: `subscription_${purpose}`,
    hosted_invoice_url: invoice.status === 'draft' ? null : `${ledger.origin}/invoices/${invoice.id}`,
    parent: {
      type: 'subscription_details',
      subscription_details: { subscription, metadata: {} },
    },
    lines: { object: 'list', data: [] },
    livemode: false,
  };
}

export function presentSession({
  price: _price,
  meteredPrices: _meteredPrices,
  ...session
}: Session): object {
  return { ...session, url: session.status === 'open' ? session.url : null, livemode: false };
}

export function presentSchedule(ledger: Ledger, { phases, ...schedule }: Schedule): object {
  const current = phases.findLast(({ start }) => start <= ledger.now) ?? phases[0];
  return {
    ...schedule,
    current_phase: current ? { start_date: current.start, end_date: current.end } : null,
    phases: phases.map(({ start, end, price }) => ({
      start_date: start,
      end_date: end,
      items: [{ price, quantity: 1 }],
    })),
  };
}

/** Adds an event with the object as it is now. */
export function emit(ledger: Ledger, type: string, object: object): void {
  const event: StripeEventRecord = {
    id: newStripeId('evt'),
    object: 'event',
    api_version: '2026-10-28.endive',
    type,
    created: ledger.now,
    livemode: false,
    data: { object: structuredClone(object) },
  };
  ledger.events.push(event);
  ledger.onEvent(event);
}

export const emitSubscription = (
  ledger: Ledger,
  subscription: Subscription,
  change: 'created' | 'updated' | 'deleted',
): void => emit(ledger, `customer.subscription.${change}`, presentSubscription(ledger, subscription));

export const emitInvoice = (ledger: Ledger, invoice: Invoice, change: string): void =>
  emit(ledger, `invoice.${change}`, presentInvoice(ledger, invoice));
