import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { addInvoice, advanceClock } from '../../dev/stripe-stand-in/billing-cycle.ts';
import { newStripeId, StandInError, type Subscription } from '../../dev/stripe-stand-in/ledger.ts';
import { emitSubscription } from '../../dev/stripe-stand-in/present.ts';
import { saveCheckoutSession } from '../../domain/billing/checkout-sessions.ts';
import { renderEmail } from '../../domain/notifications/render-email.ts';
import { renderTemplate } from '../../domain/notifications/templates.ts';
import { PURGE_ORGANIZATION, type PurgeInput } from '../../workflows/deletions/purge.contract.ts';
import { eventually } from '../support/eventually.ts';
import type { TestOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { createTestSession } from '../support/sessions.ts';
import { createStaff } from '../support/staff.ts';
import { testScope } from '../support/test-scope.ts';
import { type BillingApp, startBillingApp } from './billing-app.ts';

const DAY_S = 86_400;
let app: BillingApp;
beforeAll(async () => {
  app = await startBillingApp();
});
afterAll(() => app.stop());

type Paying = Awaited<ReturnType<BillingApp['createPaying']>>;

const auditOf = async ({ token }: TestOrganization) =>
  (await app.call('/org/audit-log?order=asc&limit=100', { token }))
    .json()
    .data.map(({ action, actor, reason, details }: Record<string, unknown>) => ({
      action,
      actor,
      reason,
      details,
    }));

async function failAndSuspend(paying: Paying): Promise<void> {
  app.setCard(paying.subscription, 'declined');
  await app.advanceDays(paying, 46);
}

describe('the audit log', () => {
  test('says what billing changed, in order: tiers, the grace, the suspension and its end', async () => {
    const paying = await app.createPaying();
    const { id } = paying.subscription;
    await app.call('/billing/subscription/change-plan', {
      method: 'POST',
      token: paying.token,
      body: { tier: 'business' },
    });
    await app.follow(paying);
    await failAndSuspend(paying);
    const graceId = await openGraceOf(paying);
    const days = { graceId, days: 3, now: new Date(app.ledger.now * 1_000) };
    await app.worker.systemTransaction((transaction) => app.work.graces.extendBySignal(transaction, days));
    await app.advanceDays(paying, 5);
    app.setCard(paying.subscription, 'works');
    await app.call('/billing/portal', { method: 'POST', token: paying.token });
    advanceClock(app.ledger, DAY_S);
    const [open] = app.invoicesOf(paying.subscription, 'open');
    if (open) await fetch(`${app.standIn.url}/v1/invoices/${open.id}/pay`, { method: 'POST' });
    await app.follow(paying);
    await app.call('/billing/subscription/cancel', {
      method: 'POST',
      token: paying.token,
      body: { when: 'now' },
    });
    await app.follow(paying);
    const entries = await auditOf(paying);
    expect(entries.map(({ action }: { action: string }) => action)).toEqual([
      'organization.tier_changed',
      'subscription.plan_changed',
      'organization.tier_changed',
      'payment_grace.started',
      'organization.suspended',
      'organization.reinstated',
      'payment_grace.extended',
      'organization.suspended',
      'payment_grace.recovered',
      'organization.reinstated',
      'subscription.cancellation_changed',
      'organization.tier_changed',
    ]);
    const byBilling = { kind: 'system', id };
    expect(entries[0]).toMatchObject({
      actor: byBilling,
      reason: 'The subscription is for the tier developer.',
      details: { from: 'free', to: 'developer', subscription_id: id },
    });
    expect(entries[2]).toMatchObject({ actor: byBilling, details: { from: 'developer', to: 'business' } });
    expect(entries[3]).toMatchObject({
      actor: byBilling,
      details: {
        grace_id: graceId,
        invoice_id: expect.stringMatching(/^in_/),
        suspend_at: expect.any(String),
      },
    });
    expect(entries[4]).toMatchObject({ actor: { kind: 'system' }, details: { reason: 'payment' } });
    expect(entries[6]).toMatchObject({ actor: byBilling, details: { days: 3 } });
    expect(entries[8]).toMatchObject({ actor: byBilling, reason: 'The payment arrived.' });
    expect(entries[11]).toMatchObject({
      actor: byBilling,
      reason: 'The subscription has ended.',
      details: { from: 'business', to: 'free' },
    });
  });
});

describe('more time to pay', () => {
  test('that is given while the organization is being suspended wins: it is not suspended', async () => {
    const paying = await app.createPaying();
    app.setCard(paying.subscription, 'declined');
    await app.advanceDays(paying, 31);
    const graceId = await openGraceOf(paying);
    advanceClock(app.ledger, 15 * DAY_S);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const extending = app.worker.systemTransaction(async (transaction) => {
      await app.work.graces.extend(transaction, {
        graceId,
        days: 7,
        now: new Date(app.ledger.now * 1_000),
      });
      reach();
      await held;
    });
    await reached;
    const review = app.work.syncs.reviewGrace(graceId);
    // The review has to wait for the extension; without a wait it would be over by then.
    await waitForBlockedReview();
    release();
    await extending;
    expect(await review).toMatchObject({ stage: 'waiting' });
    expect(await app.stateOf(paying)).toMatchObject({ status: 'active', grace: 'waiting' });
  });
});

/** A second subscription, which no checkout of this service allows. */
async function addSecond(
  { subscription: { customer } }: Paying,
  { price, status = 'active' }: { price: string; status?: string },
): Promise<Subscription> {
  const { now } = app.ledger;
  const second: Subscription = {
    id: newStripeId('sub'),
    object: 'subscription',
    customer,
    status,
    price,
    meteredPrices: [],
    period: { start: now, end: now + 300 * DAY_S },
    cancel_at_period_end: false,
    cancel_at: null,
    canceled_at: null,
    ended_at: null,
    schedule: null,
    pendingPrice: null,
    latestInvoice: null,
  };
  app.ledger.subscriptions.set(second.id, second);
  emitSubscription(app.ledger, second, 'created');
  return second;
}

const shownOf = async ({ token }: TestOrganization) =>
  (await app.call('/billing/subscription', { token })).json().id;

describe('a checkout that was open when its organization was closed', () => {
  test('gives no tier when it is paid, and a person has to settle it; recovery does', async () => {
    const organization = await app.createFree();
    const { organizationId } = organization;
    const session = (await app.startCheckout(organization)).json();
    const setClosed = (at: Date | null) =>
      query(
        app.worker,
        sql`update organizations set deleted_at = ${at} where id = ${organizationId} returning id`,
      );
    await setClosed(new Date());
    app.pay(session.id, 'works');
    await app.follow(organization);
    const { id } = app.subscriptionOf(organization);
    expect(await app.stateOf(organization)).toMatchObject({ tier: 'free', subscription: 'active' });
    expect(await problemsOf(organization)).toEqual([{ id, problem: 'organization_closed' }]);
    await setClosed(null);
    await app.work.syncs.sync(id);
    expect(await app.stateOf(organization)).toMatchObject({ tier: 'developer' });
    expect(await problemsOf(organization)).toEqual([]);
  });

  /** Closes the organization as its owner. @returns the id of the deletion. */
  async function close({ ownerId, organizationId }: TestOrganization): Promise<string> {
    const { token } = await createTestSession(app.worker, ownerId, { factors: ['totp'] });
    const { name } = (await app.call('/org', { token })).json();
    const before = app.commands.length;
    const body = { name };
    expect((await app.call('/org', { method: 'DELETE', token, body })).statusCode).toBe(202);
    const starts = app.commands.slice(before).flatMap(({ start }) => start ?? []);
    const purge = starts.find(({ workflowType }) => workflowType === PURGE_ORGANIZATION);
    expect(purge).toMatchObject({
      searchAttributes: { OrgId: organizationId },
      input: { expiresCheckout: true },
    });
    const { deletionId = '' } = (purge?.input ?? {}) as Partial<PurgeInput>;
    return deletionId;
  }

  test('expires in the lifecycle of the closing, once Stripe answers', async () => {
    const organization = await app.createFree();
    const { id } = (await app.startCheckout(organization)).json();
    const deletionId = await close(organization);
    app.standIn.intercept = () => {
      throw new StandInError(503, 'Stripe is down.');
    };
    await expect(app.activities.expireCheckout({ deletionId })).rejects.toThrow('Stripe is unavailable');
    expect(app.ledger.sessions.get(id)?.status).toBe('open');
    app.standIn.intercept = () => undefined;
    expect(await app.activities.expireCheckout({ deletionId })).toBe('expired');
    expect(app.ledger.sessions.get(id)?.status).toBe('expired');
    expect(await app.activities.expireCheckout({ deletionId })).toBe('none');
  });

  test('was paid before: its subscription needs a person', async () => {
    const organization = await app.createFree();
    const { id } = (await app.startCheckout(organization)).json();
    const deletionId = await close(organization);
    app.pay(id, 'works');
    expect(await app.activities.expireCheckout({ deletionId })).toBe('paid');
  });

  test('stays if the organization was recovered meanwhile, and none begins while it is closed', async () => {
    const organization = await app.createFree();
    const { id } = (await app.startCheckout(organization)).json();
    const deletionId = await close(organization);
    const scope = testScope(organization);
    await expect(
      saveCheckoutSession(app.database, scope, { sessionId: 'cs_late', previous: id }),
    ).rejects.toMatchObject({ code: 'organization_deleted' });
    await query(
      app.worker,
      sql`update organizations set deleted_at = null where id = ${organization.organizationId} returning id`,
    );
    expect(await app.activities.expireCheckout({ deletionId })).toBe('none');
    expect(app.ledger.sessions.get(id)?.status).toBe('open');
  });
});

describe('a second subscription that has not ended', () => {
  test('counts if it is for the higher tier, the other one needs attention, and settles with its end', async () => {
    const paying = await app.createPaying();
    const second = await addSecond(paying, { price: 'price_business' });
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'business', status: 'active' });
    expect(await shownOf(paying)).toBe(second.id);
    expect(await problemsOf(paying)).toEqual([{ id: paying.subscription.id, problem: 'pays_twice' }]);

    const staff = await createStaff(app);
    const browser = createPageClient(app);
    browser.cookies.set('session', staff.token);
    // Other tests have problems, too, of which the page shows a part.
    await query(
      app.worker,
      sql`update billing_subscriptions set synced_at = 'epoch' where id = ${paying.subscription.id} returning id`,
    );
    const overview = (await browser.open('/admin')).body;
    expect(overview).toContain(paying.organizationId);
    expect(overview).toContain('pays twice');

    // The lower one goes on being read, and changes nothing.
    await app.work.syncs.sync(paying.subscription.id);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'business' });
    expect(await problemsOf(paying)).toHaveLength(1);
    await fetch(`${app.standIn.url}/v1/subscriptions/${paying.subscription.id}`, { method: 'DELETE' });
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'business', status: 'active' });
    expect(await problemsOf(paying)).toEqual([]);
    expect(await app.emailsOf(paying)).toEqual([]);
  });

  test('keeps its tier when the higher one ends', async () => {
    const paying = await app.createPaying();
    const second = await addSecond(paying, { price: 'price_business' });
    await app.follow(paying);
    await fetch(`${app.standIn.url}/v1/subscriptions/${second.id}`, { method: 'DELETE' });
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer', status: 'active' });
    expect(await shownOf(paying)).toBe(paying.subscription.id);
    expect(await app.emailsOf(paying)).toEqual([]);
  });

  test('that is paid keeps the organization from a suspension for the other one, until it is overdue itself', async () => {
    const paying = await app.createPaying('business');
    const second = await addSecond(paying, { price: 'price_developer' });
    await app.follow(paying);
    app.setCard(paying.subscription, 'declined');
    await app.advanceDays(paying, 50);
    // The paid one counts: Stripe no longer collects the other.
    expect(await app.stateOf(paying)).toMatchObject({ tier: 'developer', status: 'active', grace: null });
    expect(await app.emailsOf(paying)).toEqual([]);
    expect(await problemsOf(paying)).toEqual([{ id: paying.subscription.id, problem: 'pays_twice' }]);

    second.status = 'past_due';
    const invoice = addInvoice(app.ledger, second, { purpose: 'cycle', status: 'open' });
    invoice.attempted = true;
    emitSubscription(app.ledger, second, 'updated');
    await app.follow(paying);
    expect(await app.emailsOf(paying)).toEqual(['payment-failed']);
    await app.work.syncs.sync(paying.subscription.id);
    await app.advanceDays(paying, 16);
    expect(await app.stateOf(paying)).toMatchObject({ status: 'suspended' });
  });

  test('that is paid ends a suspension for the other one', async () => {
    const paying = await app.createPaying();
    await failAndSuspend(paying);
    expect(await app.stateOf(paying)).toMatchObject({ status: 'suspended' });
    await addSecond(paying, { price: 'price_developer' });
    await app.follow(paying);
    expect(await app.stateOf(paying)).toMatchObject({ status: 'active', grace: 'ended', tier: 'developer' });
    const ended = (await auditOf(paying)).find(
      ({ action }: { action: string }) => action === 'payment_grace.ended',
    );
    expect(ended).toMatchObject({ reason: 'Another subscription of the organization is paid.' });
  });
});

test('an upgrade that staff approve leads to the checkout, which grants it', async () => {
  const organization = await app.createFree();
  const staff = await createStaff(app);
  const owner = await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] });
  const requested = await app.call('/org/upgrade-requests', {
    method: 'POST',
    token: owner.token,
    body: { tier: 'business', note: 'We grow.' },
  });
  const approved = await app.call(`/admin/upgrade-requests/${requested.json().id}/approve`, {
    method: 'POST',
    token: staff.token,
    body: { note: 'Welcome' },
  });
  expect(approved.json()).toMatchObject({ status: 'approved' });
  expect(await app.stateOf(organization)).toMatchObject({ tier: 'free' });
  expect(await app.emailsOf(organization)).toEqual(['upgrade-payable']);
  const email = renderEmail(
    renderTemplate('upgrade-payable', {
      organizationId: organization.organizationId,
      requestId: 'upg_1',
      tier: 'business',
      note: 'Welcome',
    }),
    app.config.PUBLIC_URL,
  );
  const [, path = ''] = /(\/billing\?org=\w+)/.exec(email.text) ?? [];
  const browser = createPageClient(app);
  browser.cookies.set('session', owner.token);
  await browser.open(path);
  await browser.submit(`/billing/start?org=${organization.organizationId}`, { tier: 'business' });
  const [session] = [...app.ledger.sessions.values()].slice(-1);
  expect(session).toMatchObject({ status: 'open', price: 'price_business' });
  app.pay(session?.id ?? '', 'works');
  await app.follow(organization);
  expect(await app.stateOf(organization)).toMatchObject({ tier: 'business', subscription: 'active' });
});

test('an organization is closed only after its subscription was canceled', async () => {
  const paying = await app.createPaying();
  const { token } = await createTestSession(app.worker, paying.ownerId, { factors: ['totp'] });
  const { name } = (await app.call('/org', { token })).json();
  const close = () => app.call('/org', { method: 'DELETE', token, body: { name } });
  const closeAccount = () => app.call('/user/me', { method: 'DELETE', token, body: {} });
  for (const refused of [await close(), await closeAccount()])
    expect(refused.json()).toMatchObject({
      status: 409,
      code: 'conflict',
      org_id: paying.organizationId,
      subscription_status: 'active',
    });
  expect((await app.call('/org', { token })).statusCode).toBe(200);
  await app.call('/billing/subscription/cancel', { method: 'POST', token: paying.token, body: {} });
  await app.follow(paying);
  expect((await close()).statusCode).toBe(202);
});

const problemsOf = ({ organizationId }: TestOrganization) =>
  query<{ id: string; problem: string }>(
    app.worker,
    sql`select id, problem from billing_subscriptions where org_id = ${organizationId} and problem is not null`,
  );

async function openGraceOf({ organizationId }: TestOrganization): Promise<string> {
  const [grace] = await query<{ id: string }>(
    app.worker,
    sql`select id from payment_graces where org_id = ${organizationId} and closed_at is null`,
  );
  if (!grace) throw new Error('no open grace');
  return grace.id;
}

/** Until a statement of this database waits for the lock of a grace. */
async function waitForBlockedReview(): Promise<void> {
  await eventually(async () => {
    const waiting = await query(
      app.worker,
      sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%payment_graces%'
        and pid <> pg_backend_pid()`,
    );
    expect(waiting.length).toBeGreaterThan(0);
  });
}
