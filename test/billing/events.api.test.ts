import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { advanceClock } from '../../dev/stripe-stand-in/billing-cycle.ts';
import { StandInError, type StripeEventRecord } from '../../dev/stripe-stand-in/ledger.ts';
import { signEvent } from '../../dev/stripe-stand-in/stand-in.ts';
import { overdueReadBacks, requestStaleReadBacks } from '../../domain/billing/overdue-billing.ts';
import { readBacklog } from '../../domain/monitoring/backlog.ts';
import { WEBHOOK_SECRET } from '../support/billing-config.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { type BillingApp, startBillingApp } from './billing-app.ts';

const DAY_S = 86_400;
let app: BillingApp;
beforeAll(async () => {
  app = await startBillingApp({ TRUST_PROXY: '127.0.0.1' });
});
afterAll(() => app.stop());
beforeEach(() => {
  app.standIn.intercept = () => undefined;
});

const eventOf = (events: StripeEventRecord[], type: string): StripeEventRecord => {
  const event = events.find((candidate) => candidate.type === type);
  if (!event) throw new Error(`no ${type} in ${events.map((candidate) => candidate.type)}`);
  return event;
};

/** The events of a renewal that fails, of which none was delivered. */
async function failRenewal() {
  const paying = await app.createPaying();
  app.setCard(paying.subscription, 'declined');
  advanceClock(app.ledger, 30 * DAY_S);
  const { customer } = paying.subscription;
  // The clock moves for the organizations of all tests.
  const events = app.ledger.events
    .splice(0)
    .filter(({ data }) => (data.object as { customer?: string }).customer === customer);
  return { paying, events };
}

describe('the webhook', () => {
  const unsigned = async (): Promise<StripeEventRecord> => {
    const organization = await app.createFree();
    app.pay((await app.startCheckout(organization)).json().id, 'works');
    const [event] = app.ledger.events.splice(0);
    if (!event) throw new Error('no event');
    return event;
  };

  test.each([
    ['a signature of another secret', { secret: 'whsec_forged' }],
    ['no signature of the format', { signature: 'v1=abc' }],
    ['an old signature', { signature: 'old' }],
    ['a body that was changed', { body: 'changed' }],
  ])('rejects %s with 401, and stores nothing', async (_name, options) => {
    const event = await unsigned();
    const payload = JSON.stringify(event);
    const sent = {
      ...options,
      ...('signature' in options && options.signature === 'old'
        ? { signature: signEvent(payload, WEBHOOK_SECRET, Math.floor(Date.now() / 1_000) - 3_600) }
        : {}),
      ...('body' in options
        ? { body: payload.replace('incomplete', 'active').replace('"active"', '"active" ') }
        : {}),
    };
    const response = await app.deliver(event, sent);
    expect(response.json()).toMatchObject({ status: 401, code: 'unauthenticated' });
    const rows = await query(app.worker, sql`select 1 from stripe_events where id = ${event.id}`);
    expect(rows).toEqual([]);
  });

  test('takes an event once, also of two deliveries at the same time', async () => {
    const event = await unsigned();
    const results = await Promise.all([app.deliver(event), app.deliver(event)]);
    expect(results.map((response) => response.json().result).sort()).toEqual(['accepted', 'duplicate']);
    expect((await app.deliver(event)).json()).toMatchObject({ result: 'duplicate' });
  });

  test.each([
    ['of live mode', (event: StripeEventRecord) => ({ ...event, livemode: true })],
    ['of another account', (event: StripeEventRecord) => ({ ...event, account: 'acct_other' })],
    [
      'for an unknown customer',
      (event: StripeEventRecord) => ({
        ...event,
        data: { object: { ...event.data.object, id: 'sub_foreign', customer: 'cus_foreign' } },
      }),
    ],
    [
      'of a type that concerns no subscription',
      (event: StripeEventRecord) => ({ ...event, type: 'payout.paid' }),
    ],
  ])('ignores an event %s', async (_name, change) => {
    const event = change(await unsigned());
    const before = app.commands.length;
    expect((await app.deliver(event)).json()).toMatchObject({ result: 'ignored' });
    expect(app.commands).toHaveLength(before);
  });

  test.each([
    ['as its id', (id: string): unknown => id],
    ['as an object', (id: string): unknown => ({ id })],
  ])(
    'takes an invoice of an older API version, which names its subscription %s',
    async (_name, reference) => {
      const { paying, events } = await failRenewal();
      const failed = eventOf(events, 'invoice.payment_failed');
      const { parent, ...invoice } = failed.data.object as { parent?: unknown };
      expect(parent).toBeDefined();
      const object = { ...invoice, subscription: reference(paying.subscription.id) };
      const response = await app.deliver({ ...failed, data: { object } } as StripeEventRecord);
      expect(response.json()).toMatchObject({ result: 'accepted' });
      await app.settle(paying);
      expect(await app.stateOf(paying)).toMatchObject({ subscription: 'past_due', grace: 'waiting' });
    },
  );

  test('refuses an address whose bodies have no valid signature, and nothing that Stripe signs', async () => {
    const [event, other] = [await unsigned(), await unsigned()];
    const stripe = '198.51.100.1';
    expect((await app.deliver(event, { from: stripe })).json()).toMatchObject({ result: 'accepted' });
    // At the same time: one after the other, a busy machine may take longer for them than the limit takes to forget them.
    const forge = async (from: string): Promise<string[]> => {
      const deliver = () => app.deliver(event, { secret: 'whsec_forged', from });
      const responses = await Promise.all(Array.from({ length: 400 }, deliver));
      return responses.map((response) => response.json().code);
    };
    const codes = await forge('203.0.113.1');
    expect(codes.filter((code) => code === 'unauthenticated').length).toBeGreaterThanOrEqual(200);
    expect(codes).toContain('rate_limited');
    // Behind a proxy that is not trusted, a forger shares the address of Stripe.
    expect(new Set(await forge(stripe))).toEqual(new Set(['unauthenticated']));
    expect((await app.deliver(other, { from: stripe })).json()).toMatchObject({ result: 'accepted' });
  });

  test('refuses a body that is larger than events are, or whose signature is none, unread', async () => {
    const event = await unsigned();
    const body = JSON.stringify({ ...event, padding: 'x'.repeat(300_000) });
    const large = await app.deliver(event, { body, signature: signEvent(body, WEBHOOK_SECRET) });
    expectProblem(large, 'payload_too_large');
    const unread = await app.deliver(event, { body, signature: 't=1,v1=0' });
    expectProblem(unread, 'unauthenticated');
    expect(unread.headers.connection).toBe('close');
  });

  test('rejects a signed body that is no event', async () => {
    const event = await unsigned();
    const before = app.commands.length;
    const withObject = (object: unknown) => JSON.stringify({ ...event, data: { object } });
    const bodies = [
      '{"object":',
      ...[null, [], 7, 'event', {}].map((value) => JSON.stringify(value)),
      ...[
        { data: null },
        { data: {} },
        { type: null },
        { type: 7 },
        { id: 7 },
        { id: 'evt\0' },
        { created: 'yesterday' },
        { created: 1e300 },
      ].map((change) => JSON.stringify({ ...event, ...change })),
      ...[null, { id: 7, customer: [] }, { id: 'sub\0', customer: 'cus_1' }, { id: 'x'.repeat(5_000) }].map(
        withObject,
      ),
    ];
    for (const body of bodies) {
      const response = await app.deliver(event, { body, signature: signEvent(body, WEBHOOK_SECRET) });
      expect({ body, ...response.json() }).toMatchObject({ body, status: 400, code: 'malformed_json' });
    }
    expect(app.commands).toHaveLength(before);
  });
});

describe('events', () => {
  test('in any order lead to the same state', async () => {
    const { paying, events } = await failRenewal();
    for (const event of events.reverse()) {
      await app.deliver(event);
      await app.settle(paying);
    }
    expect(await app.stateOf(paying)).toMatchObject({
      tier: 'developer',
      subscription: 'past_due',
      grace: 'waiting',
    });
  });

  test('that were delivered again after the payment start no second grace', async () => {
    const { paying, events } = await failRenewal();
    const failed = eventOf(events, 'invoice.payment_failed');
    await app.deliver(failed);
    await app.settle(paying);
    app.setCard(paying.subscription, 'works');
    advanceClock(app.ledger, 3 * DAY_S);
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ subscription: 'active', grace: 'recovered' });
    await app.deliver({ ...failed, id: `${failed.id}_again` });
    await app.settle(paying);
    expect(await app.stateOf(paying)).toMatchObject({ subscription: 'active', grace: 'recovered' });
    expect((await app.emailsOf(paying)).filter((name) => name === 'payment-failed')).toHaveLength(1);
  });

  test('of an old subscription that was deleted do not downgrade the new one', async () => {
    const paying = await app.createPaying();
    await app.call('/billing/subscription/cancel', {
      method: 'POST',
      token: paying.token,
      body: { when: 'now' },
    });
    const deleted = app.ledger.events.splice(0);
    await app.deliver(eventOf(deleted, 'customer.subscription.deleted'));
    await app.settle(paying);
    app.pay((await app.startCheckout(paying, 'business')).json().id, 'works');
    await app.follow(paying);
    const late = eventOf(deleted, 'customer.subscription.deleted');
    await app.deliver({ ...late, id: `${late.id}_late` });
    await app.settle(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'business', subscription: 'active' });
  });

  test('of which the run was lost in a crash are found by the reconciler', async () => {
    const { paying, events } = await failRenewal();
    await app.deliver(eventOf(events, 'invoice.payment_failed'));
    // The command of the crashed process was never dispatched.
    const { id } = paying.subscription;
    const isTaken = async () =>
      (await overdueReadBacks(app.worker).take(1_000)).some(
        ({ start, whenStopped }) => start.workflowId === `billing-sync/${id}` && whenStopped === 'restart',
      );
    expect(await isTaken()).toBe(false);
    await query(
      app.worker,
      sql`update billing_subscriptions set requested_at = now() - interval '3 minutes' where id = ${id} returning id`,
    );
    expect(await isTaken()).toBe(true);
    await app.settle(paying);
    expect(await app.stateOf(paying)).toMatchObject({ grace: 'waiting' });
  });

  test('that were all lost in an outage are made up for by the schedule', async () => {
    const { paying } = await failRenewal();
    await query(
      app.worker,
      sql`update billing_subscriptions set synced_at = now() - interval '2 days' where id = ${paying.subscription.id}`,
    );
    const { outbox, commands } = recordingOutbox();
    expect(await requestStaleReadBacks({ database: app.worker, outbox }, () => undefined)).toBeGreaterThan(0);
    expect(commands.map(({ start }) => start?.workflowId)).toContain(
      `billing-sync/${paying.subscription.id}`,
    );
    await app.settle(paying);
    expect(await app.stateOf(paying)).toMatchObject({ subscription: 'past_due', grace: 'waiting' });
  });
});

describe('a read-back', () => {
  test('whose answer is overtaken by a later one changes nothing', async () => {
    const { paying } = await failRenewal();
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    let isFirst = true;
    app.standIn.intercept = (operation, id) => {
      // The first answer, built while the payment is overdue, arrives last.
      if (operation !== 'GET /v1/subscriptions/:id' || id !== paying.subscription.id || !isFirst)
        return undefined;
      isFirst = false;
      reach();
      return held;
    };
    const older = app.work.syncs.sync(paying.subscription.id);
    await reached;
    app.setCard(paying.subscription, 'works');
    advanceClock(app.ledger, 3 * DAY_S);
    await app.work.syncs.sync(paying.subscription.id);
    release();
    await expect(older).rejects.toMatchObject({ code: 'unavailable' });
    expect(await app.stateOf(paying)).toMatchObject({ subscription: 'active', grace: null });
  });

  test('of a price that no tier has keeps the tier', async () => {
    const paying = await app.createPaying();
    app.ledger.prices.set('price_unknown', { id: 'price_unknown', unit_amount: 1, currency: 'usd' });
    paying.subscription.price = 'price_unknown';
    await app.work.syncs.sync(paying.subscription.id);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer', subscription: 'active' });
    expect(await problemOf(paying.subscription.id)).toBe('unknown_price');
    // What the alert SubscriptionNeedsAttention counts.
    const backlog = await readBacklog(app.worker);
    expect(backlog.find(({ kind }) => kind === 'subscription_problem')?.count).toBeGreaterThan(0);
    const known = app.subscriptionOf(paying);
    known.price = 'price_developer';
    await app.work.syncs.sync(known.id);
    expect(await problemOf(known.id)).toBeNull();
  });

  test('with a status that this service does not know keeps the tier', async () => {
    const paying = await app.createPaying();
    paying.subscription.status = 'hibernating';
    await app.work.syncs.sync(paying.subscription.id);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer', grace: null });
    expect(await problemOf(paying.subscription.id)).toBe('unknown_status');
  });

  test('of a subscription that Stripe does not find keeps the tier', async () => {
    const paying = await app.createPaying();
    app.ledger.subscriptions.delete(paying.subscription.id);
    expect(await app.work.syncs.sync(paying.subscription.id)).toBe('missing at Stripe');
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer' });
    expect(await problemOf(paying.subscription.id)).toBe('missing_at_stripe');
  });

  test('changes nothing while Stripe is down', async () => {
    const { paying } = await failRenewal();
    app.standIn.intercept = (operation) => {
      if (operation.startsWith('before')) throw new StandInError(500, 'down', { type: 'api_error' });
    };
    await expect(app.work.syncs.sync(paying.subscription.id)).rejects.toMatchObject({ code: 'unavailable' });
    expect(await app.stateOf(paying)).toMatchObject({ subscription: 'active', grace: null });
  });

  test('keeps what staff granted until the subscription gives another tier', async () => {
    const paying = await app.createPaying();
    await query(
      app.worker,
      sql`update organizations set tier = 'enterprise' where id = ${paying.organizationId}`,
    );
    await app.advanceDays(paying, 31);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'enterprise', subscription: 'active' });
  });

  const problemOf = async (id: string) =>
    (
      await query<{ problem: string }>(
        app.worker,
        sql`select problem from billing_subscriptions where id = ${id}`,
      )
    )[0]?.problem;
});
