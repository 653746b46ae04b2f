import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { findFreePort } from '../../dev/stack/ports.ts';
import { StandInError } from '../../dev/stripe-stand-in/ledger.ts';
import { readSubscription } from '../../domain/billing/read-subscription.ts';
import { createStripe } from '../../platform/stripe/stripe-client.ts';
import { findBrowserObstacle, launchBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { createPageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { createTestSession } from '../support/sessions.ts';
import { createStaff } from '../support/staff.ts';
import { useResource } from '../support/use-resource.ts';
import { type BillingApp, startBillingApp } from './billing-app.ts';

let app: BillingApp;
let origin: string;
beforeAll(async () => {
  const port = await findFreePort();
  origin = `http://localhost:${port}`;
  app = await startBillingApp({ PUBLIC_URL: origin });
  await app.app.listen({ host: 'localhost', port });
});
afterAll(() => app.stop());

const obstacle = findBrowserObstacle();
if (obstacle) console.warn(`Tests of pages in a browser are skipped: ${obstacle}`);

(obstacle ? describe.skip : describe)('the billing page in Chromium', () => {
  const browser = useResource(launchBrowser, (running) => running.close());

  test('leads an owner to the payment, shows an overdue one, and cancels', async () => {
    const organization = await app.createFree();
    const session = await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] });
    const context = await browser.newContext();
    await context.addCookies([{ name: 'session', value: session.token, url: origin }]);
    const page = await context.newPage();
    await page.goto(`${origin}/usage`);
    await page.getByRole('link', { name: 'Plan and payment' }).click();
    const entry = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Usage' });
    expect(await entry.getAttribute('aria-current')).toBe('page');
    await page.getByLabel('Plan').selectOption('developer');
    await page.getByRole('button', { name: 'Continue to payment' }).click();
    await page.getByRole('heading', { name: 'Checkout' }).waitFor();
    await page.getByLabel('Card').selectOption('declined');
    await page.getByRole('button', { name: 'Pay' }).click();
    await page.getByText('The card was declined.').waitFor();
    await page.getByLabel('Card').selectOption('works');
    await page.getByRole('button', { name: 'Pay' }).click();
    await page.getByRole('status').getByText('Thank you.').waitFor();
    await page.getByText('Tier: free').waitFor();
    await app.follow(organization);
    await page.reload();
    await page.getByText('Tier: developer').waitFor();

    await page.getByLabel('New plan').selectOption('business');
    await page.getByRole('button', { name: 'Show what it costs' }).click();
    await page.getByText('Due now: 180.00 USD').waitFor();
    await page.getByRole('button', { name: 'Change the plan' }).click();
    await page.getByRole('status').getByText('The plan is being changed.').waitFor();
    await app.follow(organization);

    app.setCard(app.subscriptionOf(organization), 'declined');
    await app.advanceDays(organization, 30);
    await page.goto(`${origin}/billing`);
    await page.getByRole('alert').getByText('Day of suspension').waitFor();
    await app.advanceDays(organization, 16);
    await page.reload();
    await page.getByRole('alert').getByText('The organization is suspended').waitFor();
    await page.getByRole('button', { name: 'Open the payment portal' }).click();
    await page.getByLabel('Card').selectOption('works');
    await page.getByRole('button', { name: 'Use this card' }).click();
    await page.getByRole('button', { name: 'Pay', exact: true }).click();
    await page
      .getByText(/: 200 usd, paid/)
      .first()
      .waitFor();
    await app.follow(organization);
    await page.goto(`${origin}/billing`);
    await page.getByText('Tier: business').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);

    await page.getByRole('button', { name: 'Cancel the subscription…' }).click();
    await page.getByRole('button', { name: 'Cancel the subscription', exact: true }).click();
    await page.getByRole('status').getByText('The subscription is canceled.').waitFor();
    await app.follow(organization);
    await page.reload();
    await page.getByRole('button', { name: 'Keep the subscription' }).click();
    await page.getByRole('status').getByText('The subscription continues.').waitFor();
    await context.close();
  });
});

test('the page stays, with what was chosen, while Stripe is down, and says what stands against a change', async () => {
  const paying = await app.createPaying();
  const browser = createPageClient(app);
  browser.cookies.set('session', (await createTestSession(app.worker, paying.ownerId)).token);
  await browser.open('/billing');
  const plan = `/billing/plan?org=${paying.organizationId}`;
  app.standIn.intercept = (operation) => {
    if (operation.startsWith('before')) throw new StandInError(500, 'down', { type: 'api_error' });
  };
  const down = await browser.submit(plan, { tier: 'business', when: 'now' });
  app.standIn.intercept = () => undefined;
  expect(down.statusCode).toBe(503);
  expect(down.headers['retry-after']).toBeDefined();
  expect(down.body).toContain('<p>A part of the service does not respond.</p>');
  expect(down.body).toContain('<option value="now" selected>');
  const same = await browser.submit(plan, { tier: 'developer', when: 'now' });
  expect(same.statusCode).toBe(409);
  expect(same.body).toContain('<p>The subscription is already for the tier developer.</p>');
  const second = await browser.post(`/billing/start?org=${paying.organizationId}`, {
    csrf: /name="csrf" value="([^"]+)"/.exec(same.body)?.[1] ?? '',
    tier: 'business',
  });
  expect(second.body).toContain('<p>The organization already has a subscription, which is active.</p>');
  expect(second.body).toContain('<p>Change or pay it in the payment portal.</p>');
});

const countWaitingLocks = async () =>
  (
    await query<{ count: number }>(
      app.worker,
      sql`select count(*)::int as count from pg_locks where locktype in ('transactionid', 'tuple') and not granted`,
    )
  )[0]?.count;

describe('staff', () => {
  test('give more time also while the payment suspends the organization, which is active then', async () => {
    const { token } = await createStaff(app);
    const paying = await app.createPaying();
    app.setCard(paying.subscription, 'declined');
    await app.advanceDays(paying, 40);
    expect(await app.stateOf(paying)).toMatchObject({ status: 'active', grace: 'waiting' });
    const { organizationId } = paying;
    const view = await readSubscription(createStripe(app.config), paying.subscription.id);
    if (!view) throw new Error('no subscription');
    // As a read-back that is being applied when the request arrives.
    const { extension } = await app.worker.systemTransaction(async (transaction) => {
      await query(
        transaction,
        sql`select from payment_graces where org_id = ${organizationId} for no key update`,
      );
      const started = app.call(`/admin/orgs/${organizationId}/extend-grace`, {
        method: 'POST',
        token,
        body: { days: 30, note: 'Promised on the phone' },
      });
      await eventually(async () => expect(await countWaitingLocks()).toBeGreaterThan(0));
      const now = new Date((app.ledger.now + 20 * 86_400) * 1_000);
      await app.work.graces.follow(transaction, { organizationId, view, isPaidOtherwise: false, now });
      return { extension: started };
    });
    expect((await extension).statusCode).toBe(200);
    expect(await app.stateOf(paying)).toMatchObject({ status: 'active', grace: 'waiting' });
  });

  test('give more time to pay, which ends a suspension, and both logs say why', async () => {
    const admin = await createStaff(app);
    const support = await createStaff(app, { role: 'support' });
    const paying = await app.createPaying();
    const extend = (token: string, body: object = { days: 7, note: 'Promised on the phone' }) =>
      app.call(`/admin/orgs/${paying.organizationId}/extend-grace`, { method: 'POST', token, body });
    expect((await extend(admin.token)).json()).toMatchObject({ code: 'conflict' });
    app.setCard(paying.subscription, 'declined');
    await app.advanceDays(paying, 46);
    expect(await app.stateOf(paying)).toMatchObject({ status: 'suspended' });
    expect((await extend(support.token)).statusCode).toBe(403);
    expect((await extend(paying.token)).statusCode).toBe(401);
    const extended = await extend(admin.token);
    expect(extended.statusCode).toBe(200);
    expect(await app.stateOf(paying)).toMatchObject({ status: 'active', grace: 'waiting' });
    const detail = await app.call(`/admin/orgs/${paying.organizationId}/billing`, { token: support.token });
    expect(detail.json()).toMatchObject({ status: 'unpaid', suspend_at: extended.json().suspend_at });
    const log = await query<{ action: string; reason: string }>(
      app.worker,
      sql`select action, reason from audit_entries where org_id = ${paying.organizationId} and action = 'payment_grace.extended'
         union all select action, reason from staff_audit_entries where organization_id = ${paying.organizationId} and action = 'payment_grace.extended'`,
    );
    expect(log).toEqual(Array(2).fill({ action: 'payment_grace.extended', reason: 'Promised on the phone' }));

    const browser = createPageClient(app);
    browser.cookies.set('session', admin.token);
    const path = `/admin/organizations/${paying.organizationId}`;
    expect((await browser.open(path)).body).toContain('A payment is overdue');
    const again = await browser.submit(`${path}/extend-grace`, { days: '3', note: 'Promised again' });
    expect(again.body).toMatch(/payment_grace\.extended[\s\S]*?Promised again/);
  });
});
