import { addInvoice, attemptPayment, endSubscription, listMeteredLines } from './billing-cycle.ts';
import { type FormBody, listOf, textOf } from './form-body.ts';
import {
  type Customer,
  declined,
  type Ledger,
  missing,
  newStripeId,
  requireCustomer,
  type Schedule,
  type Session,
  StandInError,
  type Subscription,
} from './ledger.ts';
import { list, METER_OPERATIONS, type Operation } from './meters.ts';
import {
  emit,
  emitInvoice,
  emitSubscription,
  presentInvoice,
  presentSchedule,
  presentSession,
  presentSubscription,
  TEST_CLOCK_ID,
} from './present.ts';

/** The operations of Stripe's API that the service calls. */
export const OPERATIONS: Record<string, Operation> = {
  'POST /v1/customers': ({ ledger, body }) => {
    const customer: Customer = {
      id: newStripeId('cus'),
      object: 'customer',
      metadata: (body.metadata ?? {}) as Record<string, string>,
      card: 'works',
    };
    ledger.customers.set(customer.id, customer);
    return customer;
  },
  'DELETE /v1/customers/:id': ({ ledger, id }) => {
    const customer = requireCustomer(ledger, id);
    customer.deleted = true;
    for (const subscription of ledger.subscriptions.values())
      if (subscription.customer === id && subscription.ended_at === null)
        endSubscription(ledger, subscription);
    emit(ledger, 'customer.deleted', customer);
    return { id, object: 'customer', deleted: true };
  },
  'POST /v1/checkout/sessions': ({ ledger, body }) => {
    const customer = requireCustomer(ledger, textOf(body.customer) ?? '');
    const [first, ...others] = listOf(body.line_items);
    const price = requirePrice(ledger, textOf(first?.price) ?? '');
    requireSameCurrency(ledger, customer.id, price.currency);
    const meteredPrices = others.map((item) => requireMetered(ledger, item));
    const id = newStripeId('cs_test');
    const session: Session = {
      id,
      object: 'checkout.session',
      status: 'open',
      payment_status: 'unpaid',
      customer: customer.id,
      subscription: null,
      url: `${ledger.origin}/checkout/${id}`,
      success_url: textOf(body.success_url) ?? '',
      cancel_url: textOf(body.cancel_url) ?? '',
      price: price.id,
      meteredPrices,
      metadata: (body.metadata ?? {}) as Record<string, string>,
    };
    ledger.sessions.set(id, session);
    return presentSession(session);
  },
  'GET /v1/checkout/sessions/:id': ({ ledger, id }) => presentSession(requireSession(ledger, id)),
  'POST /v1/checkout/sessions/:id/expire': ({ ledger, id }) => {
    const session = requireSession(ledger, id);
    if (session.status !== 'open') throw new StandInError(400, 'Only open sessions can expire.');
    session.status = 'expired';
    emit(ledger, 'checkout.session.expired', presentSession(session));
    return presentSession(session);
  },
  'POST /v1/billing_portal/sessions': ({ ledger, body }) => {
    const { id } = requireCustomer(ledger, textOf(body.customer) ?? '');
    const query = new URLSearchParams({ return_url: textOf(body.return_url) ?? '' });
    return {
      id: newStripeId('bps'),
      object: 'billing_portal.session',
      url: `${ledger.origin}/portal/${id}?${query}`,
    };
  },
  'GET /v1/subscriptions': ({ ledger, query }) => {
    const customer = requireCustomer(ledger, query.get('customer') ?? '');
    return list(
      [...ledger.subscriptions.values()]
        .filter((subscription) => subscription.customer === customer.id)
        .map((subscription) => presentSubscription(ledger, subscription)),
    );
  },
  'GET /v1/subscriptions/:id': ({ ledger, id, query }) =>
    presentSubscription(
      ledger,
      requireSubscription(ledger, id),
      query.getAll('expand[0]').includes('schedule'),
    ),
  'POST /v1/subscriptions/:id': ({ ledger, id, body }) => updateSubscription(ledger, id, body),
  'DELETE /v1/subscriptions/:id': ({ ledger, id }) => {
    const subscription = requireSubscription(ledger, id);
    endSubscription(ledger, subscription);
    return presentSubscription(ledger, subscription);
  },
  'GET /v1/invoices': ({ ledger, query }) =>
    list(
      [...ledger.invoices.values()]
        .filter(
          ({ subscription, status }) =>
            subscription === query.get('subscription') &&
            (query.get('status') === null || status === query.get('status')),
        )
        // The newest first, as Stripe lists.
        .reverse()
        .map((invoice) => presentInvoice(ledger, invoice)),
    ),
  'POST /v1/invoices/create_preview': ({ ledger, body }) => {
    const subscription = requireSubscription(ledger, textOf(body.subscription) ?? '');
    const details = (body.subscription_details ?? {}) as FormBody;
    if (details.items === undefined) return previewRenewal(ledger, subscription);
    const price = requirePrice(ledger, textOf(listOf(details.items)[0]?.price) ?? '');
    const lines = prorate(
      ledger,
      subscription,
      price.id,
      Number(textOf(details.proration_date) ?? ledger.now),
    );
    const total = lines.reduce((sum, { amount }) => sum + amount, 0);
    return {
      object: 'invoice',
      amount_due: Math.max(0, total),
      currency: price.currency,
      lines: { object: 'list', data: lines },
    };
  },
  'POST /v1/invoices/:id/finalize': ({ ledger, id }) => {
    const invoice = requireInvoice(ledger, id);
    if (invoice.status !== 'draft') throw new StandInError(400, 'This invoice is already finalized.');
    invoice.status = 'open';
    emitInvoice(ledger, invoice, 'finalized');
    return presentInvoice(ledger, invoice);
  },
  'POST /v1/invoices/:id/pay': ({ ledger, id }) => {
    const invoice = requireInvoice(ledger, id);
    if (invoice.status !== 'open') throw new StandInError(400, 'Invoice is not open.');
    if (!attemptPayment(ledger, invoice)) throw declined();
    return presentInvoice(ledger, invoice);
  },
  'POST /v1/subscription_schedules': ({ ledger, body }) => {
    const subscription = requireSubscription(ledger, textOf(body.from_subscription) ?? '');
    if (subscription.schedule) throw new StandInError(400, 'The subscription has a schedule already.');
    const { start, end } = subscription.period;
    const schedule: Schedule = {
      id: newStripeId('sub_sched'),
      object: 'subscription_schedule',
      subscription: subscription.id,
      status: 'active',
      phases: [{ start, end, price: subscription.price }],
    };
    ledger.schedules.set(schedule.id, schedule);
    subscription.schedule = schedule.id;
    return presentSchedule(ledger, schedule);
  },
  'POST /v1/subscription_schedules/:id': ({ ledger, id, body }) => {
    const schedule = requireSchedule(ledger, id);
    schedule.phases = listOf(body.phases).map((phase, index, phases) => {
      const previousEnd = textOf(phases[index - 1]?.end_date);
      const end = textOf(phase.end_date);
      return {
        start: Number(textOf(phase.start_date) ?? previousEnd),
        end: end === undefined ? null : Number(end),
        price: requirePrice(ledger, textOf(listOf(phase.items)[0]?.price) ?? '').id,
      };
    });
    const subscription = requireSubscription(ledger, schedule.subscription);
    emit(ledger, 'subscription_schedule.updated', {
      ...presentSchedule(ledger, schedule),
      customer: subscription.customer,
    });
    return presentSchedule(ledger, schedule);
  },
  'POST /v1/subscription_schedules/:id/release': ({ ledger, id }) => {
    const schedule = requireSchedule(ledger, id);
    schedule.status = 'released';
    const subscription = requireSubscription(ledger, schedule.subscription);
    subscription.schedule = null;
    emitSubscription(ledger, subscription, 'updated');
    return presentSchedule(ledger, schedule);
  },
  [`GET /v1/test_helpers/test_clocks/${TEST_CLOCK_ID}`]: ({ ledger }) => ({
    id: TEST_CLOCK_ID,
    object: 'test_helpers.test_clock',
    frozen_time: ledger.now,
    status: 'ready',
  }),
  ...METER_OPERATIONS,
};

/** The next invoice: the price of the next period, and what was used in this one. */
function previewRenewal(ledger: Ledger, subscription: Subscription): object {
  const { unit_amount: amount, currency } = requirePrice(ledger, subscription.price);
  const lines = [
    { description: subscription.price, amount, quantity: 1 },
    ...listMeteredLines(ledger, subscription, subscription.period),
  ];
  return {
    object: 'invoice',
    amount_due: lines.reduce((sum, line) => sum + line.amount, 0),
    currency,
    lines: { object: 'list', data: lines },
  };
}

function updateSubscription(ledger: Ledger, id: string, body: FormBody): object {
  const subscription = requireSubscription(ledger, id);
  if (subscription.ended_at !== null)
    throw new StandInError(
      400,
      'A canceled subscription can only update its cancellation_details and metadata.',
    );
  const atEnd = textOf(body.cancel_at_period_end);
  if (atEnd !== undefined) {
    subscription.cancel_at_period_end = atEnd === 'true';
    subscription.cancel_at = atEnd === 'true' ? subscription.period.end : null;
    subscription.canceled_at = atEnd === 'true' ? ledger.now : null;
  }
  const priceId = textOf(listOf(body.items)[0]?.price);
  if (priceId !== undefined) changePrice(ledger, subscription, priceId, body);
  emitSubscription(ledger, subscription, 'updated');
  return presentSubscription(ledger, subscription);
}

function changePrice(ledger: Ledger, subscription: Subscription, priceId: string, body: FormBody): void {
  const price = requirePrice(ledger, priceId);
  requireSameCurrency(ledger, subscription.customer, price.currency);
  if (textOf(body.proration_behavior) !== 'always_invoice') {
    subscription.price = price.id;
    return;
  }
  const at = Number(textOf(body.proration_date) ?? ledger.now);
  const amount = prorate(ledger, subscription, price.id, at).reduce((sum, line) => sum + line.amount, 0);
  const previous = subscription.latestInvoice;
  const invoice = addInvoice(ledger, subscription, { purpose: 'update', status: 'open', amount });
  if (textOf(body.payment_behavior) !== 'pending_if_incomplete') {
    subscription.price = price.id;
    attemptPayment(ledger, invoice);
    return;
  }
  subscription.pendingPrice = price.id;
  // With `pending_if_incomplete`, the invoice of a change that was not paid does not touch the subscription.
  if (!attemptPayment(ledger, invoice)) subscription.latestInvoice = previous;
}

interface ProrationLine {
  description: string;
  amount: number;
}

function prorate(
  ledger: Ledger,
  { period, price }: Subscription,
  newPrice: string,
  at: number,
): ProrationLine[] {
  const left = Math.max(0, period.end - at) / (period.end - period.start);
  const share = (id: string) => Math.round((ledger.prices.get(id)?.unit_amount ?? 0) * left);
  return [
    { description: `Unused time on ${price}`, amount: -share(price) },
    { description: `Remaining time on ${newPrice}`, amount: share(newPrice) },
  ];
}

function requireSameCurrency(ledger: Ledger, customerId: string, currency: string): void {
  for (const { customer, price, ended_at: endedAt } of ledger.subscriptions.values()) {
    const other = ledger.prices.get(price)?.currency;
    if (customer === customerId && endedAt === null && other !== undefined && other !== currency)
      throw new StandInError(
        400,
        `You cannot combine currencies on a single customer. This customer has an active subscription with currency ${other}.`,
      );
  }
}

const finder =
  <Value>(what: string, of: (ledger: Ledger) => Map<string, Value>) =>
  (ledger: Ledger, id: string): Value => {
    const found = of(ledger).get(id);
    if (found === undefined) throw missing(what, id);
    return found;
  };
/** A metered price has no quantity: it depends on what is used. */
function requireMetered(ledger: Ledger, item: FormBody): string {
  const price = requirePrice(ledger, textOf(item.price) ?? '');
  if (price.meter === undefined || item.quantity !== undefined)
    throw new StandInError(400, 'Quantity should be specified except for metered prices.');
  return price.id;
}
const requirePrice = finder('price', ({ prices }) => prices);
const requireSession = finder('checkout.session', ({ sessions }) => sessions);
const requireSubscription = finder('subscription', ({ subscriptions }) => subscriptions);
const requireInvoice = finder('invoice', ({ invoices }) => invoices);
const requireSchedule = finder('subscription schedule', ({ schedules }) => schedules);
