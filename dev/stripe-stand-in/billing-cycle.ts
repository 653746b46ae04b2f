import { type Invoice, type Ledger, newStripeId, type Session, type Subscription } from './ledger.ts';
import { emit, emitInvoice, emitSubscription, presentSession } from './present.ts';

const DAY_S = 86_400;
const PERIOD_S = 30 * DAY_S;
/** Days until each further attempt: the last is two weeks after the first. */
const RETRY_DAYS = [3, 5, 6];

/** Pays a checkout. A declined card leaves it open, as at Stripe. */
export function completeCheckout(ledger: Ledger, session: Session): boolean {
  if (session.status !== 'open') return false;
  const customer = ledger.customers.get(session.customer);
  if (!customer || customer.card === 'declined' || customer.card === 'bank') return false;
  const isPaid = customer.card === 'works';
  const subscription: Subscription = {
    id: newStripeId('sub'),
    object: 'subscription',
    customer: session.customer,
    status: isPaid ? 'active' : 'incomplete',
    price: session.price,
    meteredPrices: session.meteredPrices,
    period: { start: ledger.now, end: ledger.now + PERIOD_S },
    cancel_at_period_end: false,
    cancel_at: null,
    canceled_at: null,
    ended_at: null,
    schedule: null,
    pendingPrice: null,
    latestInvoice: null,
  };
  ledger.subscriptions.set(subscription.id, subscription);
  const invoice = addInvoice(ledger, subscription, { purpose: 'create', status: isPaid ? 'paid' : 'open' });
  Object.assign(session, {
    status: 'complete',
    payment_status: isPaid ? 'paid' : 'unpaid',
    subscription: subscription.id,
  });
  emitSubscription(ledger, subscription, 'created');
  if (isPaid) emitInvoice(ledger, invoice, 'paid');
  emit(ledger, 'checkout.session.completed', presentSession(session));
  return true;
}

export function addInvoice(
  ledger: Ledger,
  subscription: Subscription,
  { purpose, status, amount }: Pick<Invoice, 'purpose' | 'status'> & { amount?: number },
): Invoice {
  const price = ledger.prices.get(subscription.price);
  const invoice: Invoice = {
    id: newStripeId('in'),
    object: 'invoice',
    customer: subscription.customer,
    subscription: subscription.id,
    status,
    amount_due: amount ?? price?.unit_amount ?? 0,
    currency: price?.currency ?? 'usd',
    attempted: status === 'paid',
    attempt_count: status === 'paid' ? 1 : 0,
    next_payment_attempt: null,
    created: ledger.now,
    purpose,
  };
  ledger.invoices.set(invoice.id, invoice);
  subscription.latestInvoice = invoice.id;
  return invoice;
}

/** What was used within a period, at its metered prices, as lines of an invoice. */
export function listMeteredLines(
  ledger: Ledger,
  { customer, meteredPrices }: Subscription,
  { start, end }: { start: number; end: number },
): { description: string; amount: number; quantity: number }[] {
  return meteredPrices.flatMap((id) => {
    const price = ledger.prices.get(id);
    const quantity = [...ledger.meterEvents.values()]
      .filter(
        (event) =>
          event.customer === customer &&
          event.event_name === price?.meter?.replace(/^mtr_/, '') &&
          event.timestamp >= start &&
          event.timestamp < end,
      )
      .reduce((sum, { value }) => sum + value, 0);
    return quantity === 0
      ? []
      : [{ description: `${quantity} × ${id}`, amount: quantity * (price?.unit_amount ?? 0), quantity }];
  });
}

/** Tries to collect an open invoice. Returns whether it was paid. */
export function attemptPayment(ledger: Ledger, invoice: Invoice): boolean {
  const card = ledger.customers.get(invoice.customer)?.card ?? 'declined';
  if (card === 'works') {
    markPaid(ledger, invoice);
    return true;
  }
  const retryDays = RETRY_DAYS[invoice.attempt_count];
  invoice.attempted = true;
  invoice.attempt_count += 1;
  invoice.next_payment_attempt = retryDays === undefined ? null : ledger.now + retryDays * DAY_S;
  const subscription = ledger.subscriptions.get(invoice.subscription);
  if (card === 'bank') emitInvoice(ledger, invoice, 'payment_action_required');
  emitInvoice(ledger, invoice, 'payment_failed');
  if (!subscription || subscription.status === 'unpaid' || invoice.purpose !== 'cycle') return false;
  subscription.status = 'past_due';
  if (retryDays === undefined && ledger.afterRetries === 'canceled') endSubscription(ledger, subscription);
  else {
    if (retryDays === undefined) subscription.status = 'unpaid';
    emitSubscription(ledger, subscription, 'updated');
  }
  return false;
}

/** An `unpaid` subscription stays so while a newer invoice waits. */
export function markPaid(ledger: Ledger, invoice: Invoice): void {
  Object.assign(invoice, { status: 'paid', attempted: true, next_payment_attempt: null });
  emitInvoice(ledger, invoice, 'paid');
  const subscription = ledger.subscriptions.get(invoice.subscription);
  if (!subscription || subscription.ended_at !== null) return;
  if (subscription.pendingPrice !== null && invoice.purpose === 'update') {
    subscription.price = subscription.pendingPrice;
    subscription.pendingPrice = null;
  }
  const waits = [...ledger.invoices.values()].some(
    ({ subscription: of, status }) => of === subscription.id && (status === 'open' || status === 'draft'),
  );
  if (!waits) subscription.status = 'active';
  emitSubscription(ledger, subscription, 'updated');
}

export function endSubscription(ledger: Ledger, subscription: Subscription): void {
  Object.assign(subscription, { status: 'canceled', ended_at: ledger.now, canceled_at: ledger.now });
  for (const invoice of ledger.invoices.values())
    if (invoice.subscription === subscription.id && invoice.status === 'draft') invoice.status = 'void';
  emitSubscription(ledger, subscription, 'deleted');
}

/** Moves the clock, and does in order what comes due: attempts, renewals, ends. */
export function advanceClock(ledger: Ledger, seconds: number): void {
  const end = ledger.now + seconds;
  for (;;) {
    const due = nextDue(ledger);
    if (due === undefined || due.at > end) break;
    ledger.now = Math.max(ledger.now, due.at);
    due.run();
  }
  ledger.now = end;
}

function nextDue(ledger: Ledger): { at: number; run: () => void } | undefined {
  const dues = [...ledger.subscriptions.values()]
    .filter(({ ended_at, status }) => ended_at === null && status !== 'incomplete' && status !== 'paused')
    .map((subscription) => ({ at: subscription.period.end, run: () => renew(ledger, subscription) }));
  for (const invoice of ledger.invoices.values())
    if (invoice.status === 'open' && invoice.next_payment_attempt !== null)
      dues.push({ at: invoice.next_payment_attempt, run: () => void attemptPayment(ledger, invoice) });
  return dues.sort((left, right) => left.at - right.at)[0];
}

function renew(ledger: Ledger, subscription: Subscription): void {
  if (subscription.cancel_at_period_end) {
    endSubscription(ledger, subscription);
    return;
  }
  const { end } = subscription.period;
  const used = listMeteredLines(ledger, subscription, subscription.period);
  const schedule = subscription.schedule === null ? undefined : ledger.schedules.get(subscription.schedule);
  const phase = schedule?.phases.find(({ start }) => start === end);
  if (schedule && phase) {
    subscription.price = phase.price;
    subscription.schedule = null;
    schedule.status = 'released';
  }
  subscription.period = { start: end, end: end + PERIOD_S };
  const isUnpaid = subscription.status === 'unpaid';
  const invoice = addInvoice(ledger, subscription, { purpose: 'cycle', status: isUnpaid ? 'draft' : 'open' });
  invoice.amount_due += used.reduce((sum, { amount }) => sum + amount, 0);
  emitInvoice(ledger, invoice, 'created');
  // Stripe leaves the drafts of an unpaid subscription alone.
  if (isUnpaid) return;
  emitSubscription(ledger, subscription, 'updated');
  attemptPayment(ledger, invoice);
}
