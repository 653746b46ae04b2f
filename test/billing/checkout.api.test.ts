import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { StandInError } from '../../dev/stripe-stand-in/ledger.ts';
import { SETTLE_HELD_WORK } from '../../workflows/suspensions/settle-held-work.contract.ts';
import { expectWithin } from '../support/expect-within.ts';
import { createKey } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';
import { arrangeSuspensions } from '../support/suspensions.ts';
import { arrangeDeliveries, httpAnswer } from '../support/webhook-deliveries.ts';
import { type BillingApp, startBillingApp } from './billing-app.ts';

let app: BillingApp;
const self = useTestApp();
beforeAll(async () => {
  app = await startBillingApp();
});
afterAll(() => app.stop());
beforeEach(() => {
  app.standIn.intercept = () => undefined;
});

const post = (path: string, token: string, body: object = {}, headers: Record<string, string> = {}) =>
  app.call(`/billing${path}`, { method: 'POST', token, body, headers });

describe('without billing', () => {
  test.each([
    [
      'POST',
      '/billing/checkout',
      { tier: 'developer', success_url: 'https://a.test', cancel_url: 'https://a.test' },
    ],
    ['POST', '/billing/portal', {}],
    ['GET', '/billing/subscription', undefined],
    ['POST', '/billing/subscription/change-plan', { tier: 'business' }],
    ['POST', '/billing/subscription/cancel', {}],
    ['POST', '/billing/webhook', {}],
  ] as const)('%s %s is 404 feature_disabled', async (method, path, body) => {
    const { organizationId, token } = await app.createFree();
    const agent = await createKey(app.worker, { organizationId, permissions: ['messages:read'] });
    for (const by of [token, agent.token])
      for (const prefix of ['', '/api/v1']) {
        const response = await self.call(path, { method, token: by, prefix, ...(body ? { body } : {}) });
        expect(response.json()).toMatchObject({ status: 404, code: 'feature_disabled' });
      }
  });

  test.each(['checkout', 'portal', 'subscription/change-plan', 'subscription/cancel'])(
    'POST /billing/%s says so before it looks at the body, and after the credential',
    async (path) => {
      const { token } = await app.createFree();
      for (const prefix of ['', '/api/v1'])
        for (const [contentType, raw] of [
          ['application/json', '{"tier":'],
          ['application/json', '{"unknown":true}'],
          ['text/plain', 'x'],
        ] as const) {
          const headers = { 'content-type': contentType };
          const send = (by?: string) =>
            self.call(`/billing/${path}`, {
              method: 'POST',
              prefix,
              raw,
              headers,
              ...(by ? { token: by } : {}),
            });
          expect((await send(token)).json()).toMatchObject({ code: 'feature_disabled' });
          expect((await send()).json()).toMatchObject({ code: 'unauthenticated' });
        }
    },
  );
});

describe('a checkout', () => {
  test('gives the tier with Stripe’s event, not before', async () => {
    const organization = await app.createFree();
    const response = await app.startCheckout(organization);
    expect(response.json()).toEqual({
      object: 'checkout_session',
      id: expect.stringMatching(/^cs_/),
      url: expect.stringContaining('http'),
    });
    expect(app.pay(response.json().id, 'works')).toBe(true);
    expect(await app.stateOf(organization)).toMatchObject({ tier: 'free', subscription: null });
    await app.follow(organization);
    expect(await app.stateOf(organization)).toMatchObject({ tier: 'developer', subscription: 'active' });
    const { json } = await app.call('/billing/subscription', { token: organization.token, prefix: '' });
    expect(json()).toMatchObject({
      status: 'active',
      tier: 'developer',
      subscription_tier: 'developer',
      suspend_at: null,
    });
  });

  test('needs only a tier, and then leads back to the billing page', async () => {
    const organization = await app.createFree();
    const { id } = (await post('/checkout', organization.token, { tier: 'developer' })).json();
    const page = `${app.config.PUBLIC_URL}/billing?org=${organization.organizationId}`;
    expect(app.ledger.sessions.get(id)).toMatchObject({
      success_url: `${page}&notice=payment-under-way`,
      cancel_url: page,
    });
  });

  test('is what staff pass on when they approve an upgrade to a tier that has a price', async () => {
    const { token: staff } = await createStaff(app);
    const ask = async ({ token }: { token: string }, tier: string) =>
      (
        await app.call('/org/upgrade-requests', { method: 'POST', token, body: { tier, note: 'More mail.' } })
      ).json();
    const approve = async ({ id }: { id: string }) =>
      app.call(`/admin/upgrade-requests/${id}/approve`, {
        method: 'POST',
        token: staff,
        body: { note: 'Welcome' },
      });
    const free = await app.createFree();
    const request = await ask(free, 'developer');
    app.standIn.intercept = () => {
      throw new StandInError(500, 'down', { type: 'api_error' });
    };
    expect((await approve(request)).json()).toMatchObject({ code: 'unavailable' });
    app.standIn.intercept = () => undefined;
    const approved = (await approve(request)).json();
    expect(approved).toMatchObject({ id: request.id, status: 'approved', tier: 'developer' });
    const session = [...app.ledger.sessions.values()].find(({ id }) => approved.checkout_url.includes(id));
    expect(app.pay(session?.id ?? '', 'works')).toBe(true);
    expect(await app.stateOf(free)).toMatchObject({ tier: 'free' });
    await app.follow(free);
    expect(await app.stateOf(free)).toMatchObject({ tier: 'developer' });
    expect((await approve(request)).json()).toMatchObject({ code: 'conflict' });

    // With a subscription the plan changes on the billing page.
    const larger = (await approve(await ask(free, 'business'))).json();
    expect(larger.checkout_url).toBe(`${app.config.PUBLIC_URL}/billing?org=${free.organizationId}`);
  });

  test('waits for a payment that arrives later', async () => {
    const organization = await app.createFree();
    app.pay((await app.startCheckout(organization)).json().id, 'slow');
    await app.follow(organization);
    expect(await app.stateOf(organization)).toMatchObject({
      tier: 'free',
      subscription: 'incomplete',
      grace: null,
    });
    expect((await app.startCheckout(organization)).statusCode).toBe(409);
  });

  test('is used again while it is open, also by calls at the same time, and replaced for another tier', async () => {
    const organization = await app.createFree();
    const [first, second] = await Promise.all([
      app.startCheckout(organization),
      app.startCheckout(organization),
    ]);
    expect(second?.json()).toEqual(first?.json());
    expect((await app.startCheckout(organization)).json()).toEqual(first?.json());
    const other = await app.startCheckout(organization, 'business');
    expect(other.json().id).not.toBe(first?.json().id);
    expect(app.ledger.sessions.get(first?.json().id)?.status).toBe('expired');
    expect(
      [...app.ledger.customers.values()].filter(
        ({ metadata }) => metadata.organization_id === organization.organizationId,
      ),
    ).toHaveLength(1);
  });

  test('at the same time as one for another tier leaves one that can be paid', async () => {
    const organization = await app.createFree();
    const tiers = ['developer', 'business', 'developer', 'enterprise'];
    const responses = await Promise.all(tiers.map((tier) => app.startCheckout(organization, tier)));
    expect(responses.filter(({ statusCode }) => statusCode === 200).length).toBeGreaterThan(0);
    const codes = responses.map(({ statusCode }) => statusCode);
    expect(codes.filter((code) => code !== 200 && code !== 409)).toEqual([]);
    const open = [...app.ledger.sessions.values()].filter(
      ({ customer, status }) =>
        status === 'open' &&
        app.ledger.customers.get(customer)?.metadata.organization_id === organization.organizationId,
    );
    expect(open).toHaveLength(1);
    const last = await app.startCheckout(organization, 'business');
    expect(app.ledger.sessions.get(last.json().id)?.status).toBe('open');
  });

  test('is 409 with the portal’s link while a subscription has not ended, even before its event', async () => {
    const organization = await app.createFree();
    app.pay((await app.startCheckout(organization)).json().id, 'works');
    const response = await app.startCheckout(organization);
    expect(response.json()).toMatchObject({
      code: 'conflict',
      portal_url: expect.stringContaining('/portal/'),
      subscription_status: 'active',
    });
  });

  test.each(['trialing', 'past_due', 'unpaid', 'paused', 'incomplete'])(
    'is 409 while a subscription is %s',
    async (status) => {
      const paying = await app.createPaying();
      paying.subscription.status = status;
      expect((await app.startCheckout(paying, 'business')).json()).toMatchObject({
        code: 'conflict',
        portal_url: expect.stringContaining('/portal/'),
        subscription_status: status,
      });
    },
  );

  test('that is finished twice gives one subscription, one tier and one entry', async () => {
    const organization = await app.createFree();
    const { id } = (await app.startCheckout(organization)).json();
    expect(app.pay(id, 'works')).toBe(true);
    expect(app.pay(id, 'works')).toBe(false);
    const [completed] = app.ledger.events.filter(({ type }) => type === 'checkout.session.completed');
    if (!completed) throw new Error('no event');
    app.ledger.events.push({ ...completed, id: `${completed.id}_again` });
    await app.follow(organization);
    const rows = await query(
      app.worker,
      sql`select id from billing_subscriptions where org_id = ${organization.organizationId}`,
    );
    expect(rows).toHaveLength(1);
    const { json } = await app.call('/org/audit-log?action=organization.tier_changed', {
      token: organization.token,
    });
    expect(json().data).toHaveLength(1);
    expect(await app.stateOf(organization)).toMatchObject({ tier: 'developer', subscription: 'active' });
  });

  test('can be made again after the customer was deleted at Stripe', async () => {
    const paying = await app.createPaying();
    const stripe = await fetch(`${app.standIn.url}/v1/customers/${paying.subscription.customer}`, {
      method: 'DELETE',
    });
    expect(stripe.status).toBe(200);
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'free', subscription: 'canceled' });
    const again = await app.startCheckout(paying, 'business');
    expect(again.statusCode).toBe(200);
    app.pay(again.json().id, 'works');
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'business', subscription: 'active' });
  });

  test.each([
    'https://elsewhere.example/back',
    'http://localhost:3000@elsewhere.example/',
    'javascript:alert(1)',
    'blob:http://localhost:3000/0b2f',
    '/relative',
  ])('refuses to lead back to %s', async (target) => {
    const organization = await app.createFree();
    const before = app.standIn.requests.length;
    const response = await app.startCheckout(organization, 'developer', { success_url: target });
    expect(response.json()).toMatchObject({ status: 400, code: 'validation_error' });
    expect(app.standIn.requests).toHaveLength(before);
  });

  test('refuses a tier that is not for sale', async () => {
    const organization = await app.createFree();
    expect((await app.startCheckout(organization, 'free')).json()).toMatchObject({
      status: 422,
      code: 'unprocessable',
    });
  });

  test('needs billing:manage and a credential for the whole organization', async () => {
    const organization = await app.createFree();
    const { organizationId } = organization;
    const { token } = await createKey(app.worker, {
      organizationId,
      permissions: ['inboxes:read', 'org:update'],
    });
    expect((await app.startCheckout({ ...organization, token })).json()).toMatchObject({
      permission: 'billing:manage',
    });
    const bound = await createKey(app.worker, {
      organizationId,
      environmentId: organization.productionEnvironmentId,
    });
    expect((await app.startCheckout({ ...organization, token: bound.token })).statusCode).toBe(403);
  });

  test('has both paths, like every operation, and each needs billing:manage', async () => {
    const paying = await app.createPaying('business');
    const { token } = await createKey(app.worker, {
      organizationId: paying.organizationId,
      permissions: ['inboxes:read', 'org:update'],
    });
    const operations: ['GET' | 'POST', string, object?][] = [
      ['GET', '/billing/subscription'],
      ['POST', '/billing/portal', {}],
      ['POST', '/billing/subscription/change-plan', { tier: 'developer', preview: true }],
      ['POST', '/billing/subscription/cancel', { when: 'never' }],
    ];
    for (const prefix of ['', '/api/v1'])
      for (const [method, path, body] of operations) {
        const call = { method, prefix, ...(body ? { body } : {}) };
        expect({ path, status: (await app.call(path, { ...call, token: paying.token })).statusCode }).toEqual(
          {
            path,
            status: 200,
          },
        );
        expect((await app.call(path, { ...call, token })).json()).toMatchObject({
          status: 403,
          permission: 'billing:manage',
        });
      }
    for (const prefix of ['', '/api/v1']) {
      const free = await app.createFree();
      const body = {
        tier: 'developer',
        success_url: 'http://localhost:3000/',
        cancel_url: 'http://localhost:3000/',
      };
      const call = { method: 'POST' as const, prefix, body };
      expect((await app.call('/billing/checkout', { ...call, token: free.token })).statusCode).toBe(200);
      expect((await app.call('/billing/checkout', { ...call, token })).statusCode).toBe(403);
    }
  });

  test('is answered once for an Idempotency-Key', async () => {
    const { token } = await app.createFree();
    const body = {
      tier: 'developer',
      success_url: 'http://localhost:3000/',
      cancel_url: 'http://localhost:3000/',
    };
    const headers = { 'idempotency-key': 'one' };
    const first = await post('/checkout', token, body, headers);
    expect(first.statusCode).toBe(200);
    const before = app.standIn.requests.length;
    expect((await post('/checkout', token, body, headers)).json()).toEqual(first.json());
    expect(app.standIn.requests).toHaveLength(before);
  });
});

describe('while Stripe is down or slow', () => {
  test.each([
    [
      'answers 500',
      () => {
        throw new StandInError(500, 'down', { type: 'api_error' });
      },
    ],
    [
      'refuses the key',
      () => {
        throw new StandInError(401, 'Invalid API Key', { type: 'invalid_request_error' });
      },
    ],
    [
      'limits requests',
      () => {
        throw new StandInError(429, 'slow down', { type: 'invalid_request_error' });
      },
    ],
  ])('a checkout is 503 if it %s, and leaves nothing half done', async (_name, intercept) => {
    const organization = await app.createFree();
    app.standIn.intercept = (operation) => (operation.startsWith('before') ? intercept() : undefined);
    expect((await app.startCheckout(organization)).json()).toMatchObject({
      status: 503,
      code: 'unavailable',
    });
    app.standIn.intercept = () => undefined;
    const { json } = await app.call('/billing/subscription', { token: organization.token });
    expect(json()).toMatchObject({ id: null, status: 'none', tier: 'free' });
    expect((await app.startCheckout(organization)).statusCode).toBe(200);
  });

  test.each([
    ['portal', '/portal', {}],
    ['change of plan', '/subscription/change-plan', { tier: 'business' }],
    [
      'change of plan for the next period',
      '/subscription/change-plan',
      { tier: 'business', when: 'period_end' },
    ],
    ['cancellation', '/subscription/cancel', { when: 'now' }],
  ])('a %s is 503, and changes nothing here or there', async (_name, path, body) => {
    const paying = await app.createPaying();
    const before = structuredClone(app.subscriptionOf(paying));
    app.standIn.intercept = (operation) => {
      if (operation.startsWith('before')) throw new StandInError(500, 'down', { type: 'api_error' });
    };
    expect((await post(path, paying.token, body)).json()).toMatchObject({
      status: 503,
      code: 'unavailable',
    });
    app.standIn.intercept = () => undefined;
    expect(app.subscriptionOf(paying)).toEqual(before);
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer', subscription: 'active' });
    const { json } = await app.call('/org/audit-log?resource_type=subscription', { token: paying.token });
    expect(json().data).toEqual([]);
  });

  test('a change of plan that Stripe never answers is 503 in bounded time', async () => {
    const paying = await app.createPaying();
    app.standIn.intercept = (operation) =>
      operation.startsWith('before') ? new Promise<void>(() => undefined) : undefined;
    const response = await expectWithin(10_000, () =>
      post('/subscription/change-plan', paying.token, { tier: 'business' }),
    );
    expect(response.json()).toMatchObject({ status: 503, code: 'unavailable' });
    expect(app.subscriptionOf(paying).price).toBe('price_developer');
  });
});

describe('a change of plan', () => {
  test('shows what an upgrade costs, and costs that', async () => {
    const paying = await app.createPaying();
    const preview = await post('/subscription/change-plan', paying.token, {
      tier: 'business',
      preview: true,
    });
    expect(preview.json()).toMatchObject({
      status: 'preview',
      proration: { amount_due: 18_000, currency: 'usd' },
    });
    expect(app.subscriptionOf(paying).price).toBe('price_developer');
    const { proration_date } = preview.json().proration;
    const change = await post('/subscription/change-plan', paying.token, {
      tier: 'business',
      proration_date,
    });
    expect(change.json()).toMatchObject({ status: 'accepted', proration: { amount_due: 18_000 } });
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer' });
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'business' });
  });

  test('is charged from now on, whatever date the client names', async () => {
    const paying = await app.createPaying();
    const { start, end } = paying.subscription.period;
    for (const proration_date of [end, end - 86_400, start - 7_200, 0])
      for (const preview of [true, false])
        expect(
          (
            await post('/subscription/change-plan', paying.token, {
              tier: 'business',
              proration_date,
              preview,
            })
          ).json(),
        ).toMatchObject({ status: 400, code: 'validation_error' });
    expect(paying.subscription.price).toBe('price_developer');
  });

  test('does not take effect while the upgrade is not paid', async () => {
    const paying = await app.createPaying();
    app.setCard(paying.subscription, 'declined');
    const change = await post('/subscription/change-plan', paying.token, { tier: 'business' });
    expect(change.json()).toMatchObject({ status: 'payment_required' });
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({
      tier: 'developer',
      subscription: 'active',
      grace: null,
    });
  });

  test('to a lower tier at the end of the period waits for it, and can be replaced', async () => {
    const paying = await app.createPaying('business');
    const change = await post('/subscription/change-plan', paying.token, {
      tier: 'developer',
      when: 'period_end',
    });
    expect(change.json()).toMatchObject({ status: 'accepted', proration: null });
    await app.follow(paying);
    const { json } = await app.call('/billing/subscription', { token: paying.token });
    expect(json()).toMatchObject({ tier: 'business', scheduled_tier: 'developer' });
    await app.advanceDays(paying, 31);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer', subscription: 'active' });
  });

  test('to a lower tier warns of use above its limits, and releases or holds by them at once', async () => {
    const paying = await app.createPaying('business');
    await query(
      app.worker,
      sql`insert into usage_counters (org_id, counter, period_start, amount) values (${paying.organizationId}, 'storage_bytes', 'epoch', 20000000000)`,
    );
    const change = await post('/subscription/change-plan', paying.token, { tier: 'developer' });
    expect(change.json()).toMatchObject({
      status: 'accepted',
      warnings: [{ counter: 'storage_bytes', current: 20_000_000_000, limit: 10 * 1024 ** 3 }],
    });
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer' });
    const limits = await app.call('/org/usage', { token: paying.token });
    expect(JSON.stringify(limits.json())).toContain(String(10 * 1024 ** 3));
  });

  test('to a price in another currency is refused by Stripe, which the answer says', async () => {
    const paying = await app.createPaying();
    const change = await post('/subscription/change-plan', paying.token, { tier: 'enterprise' });
    expect(change.json()).toMatchObject({
      status: 422,
      code: 'unprocessable',
      detail: expect.stringContaining('currenc'),
    });
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer' });
  });

  test('is refused for a subscription that someone gave several prices at Stripe, which keeps its tier', async () => {
    const paying = await app.createPaying();
    app.ledger.prices.set('price_extra', { id: 'price_extra', unit_amount: 500, currency: 'usd' });
    paying.subscription.meteredPrices.push('price_extra');
    const change = await post('/subscription/change-plan', paying.token, { tier: 'business' });
    expect(change.json()).toMatchObject({
      code: 'conflict',
      detail: expect.stringContaining('several prices'),
    });
    await app.work.syncs.sync(paying.subscription.id);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer', subscription: 'active' });
  });

  test('to a higher tier releases the deliveries that waited, at once', async () => {
    const arranged = await arrangeDeliveries(app.worker, 2);
    const { organization } = arranged;
    const { organizationId } = organization;
    await query(
      app.worker,
      sql`update organizations set tier = 'free' where id = ${organizationId} returning id`,
    );
    await query(
      app.worker,
      sql`insert into usage_counters (org_id, counter, period_start, amount)
      values (${organizationId}, 'webhook_deliveries', date_trunc('month', now(), 'UTC'), 30000) returning org_id`,
    );
    const worker = arranged.worker(async () => httpAnswer(200));
    for (const id of arranged.deliveryIds) await worker.attempt(id, true, 1);
    const { heldWork } = arrangeSuspensions(app.worker);
    const release = () => heldWork.release(organizationId, () => undefined);
    expect((await arranged.deliveries()).map(({ heldFor }) => heldFor)).toEqual([
      'usage_limit',
      'usage_limit',
    ]);
    expect((await release()).deliveries).toBe(0);
    app.pay((await app.startCheckout(organization)).json().id, 'works');
    app.workCommands.length = 0;
    await app.follow(organization);
    const run = app.workCommands.find(
      ({ start }) =>
        start?.workflowType === SETTLE_HELD_WORK && start.searchAttributes.OrgId === organizationId,
    );
    expect(run?.start?.input).toEqual({ organizationId, suspension: null });
    expect((await release()).deliveries).toBe(2);
    expect((await arranged.deliveries()).map(({ status }) => status)).toEqual(['pending', 'pending']);
  });

  test('needs a subscription in good standing, and another tier', async () => {
    const free = await app.createFree();
    expect((await post('/subscription/change-plan', free.token, { tier: 'business' })).statusCode).toBe(409);
    const paying = await app.createPaying();
    expect((await post('/subscription/change-plan', paying.token, { tier: 'developer' })).statusCode).toBe(
      409,
    );
    app.setCard(paying.subscription, 'declined');
    await app.advanceDays(paying, 31);
    expect(
      (await post('/subscription/change-plan', paying.token, { tier: 'business' })).json(),
    ).toMatchObject({
      status: 409,
      subscription_status: 'past_due',
    });
  });
});

describe('a cancellation', () => {
  test('for the end of the period can be taken back', async () => {
    const paying = await app.createPaying();
    expect((await post('/subscription/cancel', paying.token)).json()).toMatchObject({
      status: 'ends',
      cancel_at: expect.any(String),
    });
    await app.follow(paying);
    const subscription = await app.call('/billing/subscription', { token: paying.token });
    expect(subscription.json()).toMatchObject({
      status: 'active',
      cancel_at: expect.any(String),
      tier: 'developer',
    });
    expect((await post('/subscription/cancel', paying.token, { when: 'never' })).json()).toEqual({
      object: 'cancellation',
      status: 'continues',
      cancel_at: null,
    });
    await app.follow(paying);
    await app.advanceDays(paying, 31);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer', subscription: 'active' });
  });

  test('that was made at Stripe for a date of its own counts as one', async () => {
    const paying = await app.createPaying();
    paying.subscription.cancel_at = app.ledger.now + 10 * 86_400;
    await app.work.syncs.sync(paying.subscription.id);
    const { json } = await app.call('/billing/subscription', { token: paying.token });
    expect(json()).toMatchObject({
      status: 'active',
      cancel_at: new Date(paying.subscription.cancel_at * 1_000).toISOString(),
    });
  });

  test('now ends the tier with Stripe’s event, with an email, and a new checkout works', async () => {
    const paying = await app.createPaying();
    expect((await post('/subscription/cancel', paying.token, { when: 'now' })).json()).toMatchObject({
      status: 'canceled',
    });
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer' });
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'free', subscription: 'canceled' });
    expect(await app.emailsOf(paying)).toEqual(['subscription-ended']);
    const again = await app.startCheckout(paying);
    // Stripe answers a repeated request with the first answer, whose session is over.
    expect(app.ledger.sessions.get(again.json().id)?.status).toBe('open');
    app.pay(again.json().id, 'works');
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer', subscription: 'active' });
  });
});
