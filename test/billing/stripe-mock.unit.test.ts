import { describe, expect, test } from '@jest/globals';
import type Stripe from 'stripe';
import { ensureCustomer } from '../../domain/billing/billing-state.ts';
import { openCheckout } from '../../domain/billing/checkout-sessions.ts';
import { hasReport, sendReport } from '../../domain/billing/meter-reporting.service.ts';
import { readMeteredPrices } from '../../domain/billing/metered-counters.ts';
import { changePrice, previewPrice } from '../../domain/billing/plan-change.ts';
import { createMeterReader, type MeterView } from '../../domain/billing/read-meters.ts';
import { readSubscription, type SubscriptionView } from '../../domain/billing/read-subscription.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import type { Database } from '../../platform/database/database.ts';
import { type Connection, typeConnection } from '../../platform/database/typed-connection.ts';
import { createStripe } from '../../platform/stripe/stripe-client.ts';
import { findStripeMockObstacle, startStripeMock } from '../support/stripe-mock.ts';
import { useResource } from '../support/use-resource.ts';

const obstacle = findStripeMockObstacle();
if (obstacle) console.warn(`Tests with stripe-mock are skipped: ${obstacle}`);

/** The shapes of requests and answers, by Stripe's own description of its API. It keeps no state. */
(obstacle ? describe.skip : describe)('every request to Stripe fits the description of its API', () => {
  const mock = useResource(startStripeMock, (running) => running.close());
  const connect = (): Stripe =>
    createStripe({ STRIPE_SECRET_KEY: 'sk_test_123', STRIPE_API_BASE: mock.url, STRIPE_TIMEOUT_MS: 10_000 });
  const db = typeConnection({
    query: async () => ({ command: 'INSERT', rowCount: 1, rows: [{}] }),
  } as unknown as Connection);
  const database = {
    transaction: async (_scope: object, work: (transaction: object) => unknown) => work({ db }),
  } as unknown as Database;
  const scope = { organizationId: 'org_1' } as Scope;

  test('a customer and a checkout', async () => {
    const stripe = connect();
    const customerId = await ensureCustomer({ database, stripe }, scope, { current: undefined });
    expect(customerId).toMatch(/^cus_/);
    const session = await openCheckout({ database, stripe }, scope, {
      customerId,
      price: 'price_1',
      meteredPrices: ['price_2'],
      tier: 'developer',
      successUrl: 'https://app.example/back',
      cancelUrl: 'https://app.example/back',
      previous: 'cs_test_1',
      previousSubscription: null,
    });
    expect(session).toEqual({ id: expect.stringMatching(/^cs_/), url: expect.stringMatching(/^https:/) });
  });

  test('a read-back, its finalized drafts, and the portal', async () => {
    const stripe = connect();
    expect(await readSubscription(stripe, 'sub_1')).toMatchObject({
      id: 'sub_1',
      status: expect.any(String),
      priceId: expect.stringMatching(/^price_/),
      currentPeriodEnd: expect.any(Date),
    });
    expect(await stripe.testHelpers.testClocks.retrieve('clock_1')).toMatchObject({
      frozen_time: expect.any(Number),
    });
    await stripe.invoices.finalizeInvoice('in_1', { auto_advance: true });
    await stripe.invoices.pay('in_1', {});
    await stripe.subscriptions.list({ customer: 'cus_1', status: 'all', limit: 100 });
    const portal = await stripe.billingPortal.sessions.create({
      customer: 'cus_1',
      return_url: 'https://a.example',
    });
    expect(portal.url).toMatch(/^http/);
  });

  test('a change of plan now and later, and its preview', async () => {
    const stripe = connect();
    const change = { subscriptionId: 'sub_1', price: 'price_2', prorationDate: 1_700_000_000 };
    expect(await previewPrice(stripe, { ...change, when: 'now', isUpgrade: true })).toMatchObject({
      amountDue: expect.any(Number),
      currency: expect.any(String),
    });
    expect(await changePrice(stripe, { ...change, when: 'now', isUpgrade: true })).toEqual(
      expect.any(Boolean),
    );
    expect(await changePrice(stripe, { ...change, when: 'now', isUpgrade: false })).toEqual(
      expect.any(Boolean),
    );
    expect(await changePrice(stripe, { ...change, when: 'period_end', isUpgrade: false })).toBe(true);
  });

  test('a cancellation now, later, and taken back', async () => {
    const stripe = connect();
    await stripe.subscriptions.update('sub_1', { cancel_at_period_end: true });
    await stripe.subscriptions.update('sub_1', { cancel_at_period_end: false });
    await stripe.subscriptionSchedules.release('sub_sched_1');
    await stripe.subscriptions.cancel('sub_1');
    await stripe.checkout.sessions.expire('cs_test_1');
  });

  test('a meter, a report of use, and whether it arrived', async () => {
    const stripe = connect();
    const readMeters = createMeterReader({
      stripe,
      prices: readMeteredPrices('messages_sent:price_1'),
      logger: { error: () => undefined },
    });
    const metered = [{ priceId: 'price_1', meterId: 'mtr_1' }];
    const meters = await readMeters({ id: 'sub_1', endedAt: null, metered } as unknown as SubscriptionView);
    expect(meters).toEqual([
      {
        counter: 'messages_sent',
        priceId: 'price_1',
        meterId: 'mtr_1',
        eventName: expect.any(String),
        customerField: expect.any(String),
        valueField: expect.any(String),
      },
    ]);
    const report = {
      ...(meters?.[0] as MeterView),
      id: 'org_1/messages_sent/2026-11-22T10',
      windowStart: new Date('2026-11-22T10:00:00Z'),
      units: 3,
      customerId: 'cus_1',
    };
    expect(await sendReport(stripe, report)).toMatchObject({ object: 'billing.meter_event' });
    expect(await hasReport(stripe, report)).toEqual(expect.any(Boolean));
    const next = await stripe.invoices.createPreview({ subscription: 'sub_1' });
    expect(next.amount_due).toEqual(expect.any(Number));
  });

  test('an unknown field is refused, which shows that the tests above can fail', async () => {
    const parameters = { unknown_field: 'x' } as unknown as Stripe.SubscriptionUpdateParams;
    await expect(connect().subscriptions.update('sub_1', parameters)).rejects.toThrow();
  });
});
