import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import {
  addInvoice,
  advanceClock,
  attemptPayment,
  endSubscription,
} from '../../dev/stripe-stand-in/billing-cycle.ts';
import type { Invoice, Subscription } from '../../dev/stripe-stand-in/ledger.ts';
import { emitSubscription } from '../../dev/stripe-stand-in/present.ts';
import { formatUtc } from '../../domain/notifications/format-utc.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createNotifySuspension } from '../../domain/notifications/notify-suspension.ts';
import { renderEmail } from '../../domain/notifications/render-email.ts';
import { renderTemplate, type TemplateName } from '../../domain/notifications/templates.ts';
import type { SuspensionReason } from '../../domain/suspensions/suspension.entity.ts';
import { createSuspensionService } from '../../domain/suspensions/suspension.service.ts';
import type { TestOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { createTestSession } from '../support/sessions.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { type BillingApp, startBillingApp } from './billing-app.ts';

let app: BillingApp;
beforeAll(async () => {
  app = await startBillingApp();
});
afterAll(() => app.stop());

type Paying = TestOrganization & { subscription: Subscription };

/** Renews with a card that is declined. */
async function fail(paying: Paying, days = 30): Promise<Paying> {
  app.setCard(paying.subscription, 'declined');
  await app.advanceDays(paying, days);
  return paying;
}
const failed = async () => fail(await app.createPaying());
/** The renewal fails on day 30, and the grace ends 15 days later. */
const suspended = async () => fail(await app.createPaying(), 46);

async function pay(paying: Paying, invoice?: Invoice): Promise<void> {
  app.setCard(paying.subscription, 'works');
  const open = invoice ?? app.invoicesOf(paying.subscription, 'open')[0];
  if (!open) throw new Error('no open invoice');
  attemptPayment(app.ledger, open);
}

async function suspendByStaff({ organizationId }: TestOrganization, reason: SuspensionReason): Promise<void> {
  const { outbox } = recordingOutbox();
  const suspensions = createSuspensionService({
    outbox,
    onChange: createNotifySuspension(createNotificationService({ outbox })),
  });
  await app.worker.systemTransaction((transaction) =>
    suspensions.suspend(
      transaction,
      { type: 'organization', id: organizationId, organizationId },
      { reason, note: 'Test', actor: { kind: 'staff', id: 'usr_test' } },
    ),
  );
}

/** How each situation of `docs/billing.md` comes about. */
const SITUATIONS: Record<string, () => Promise<TestOrganization>> = {
  'no subscription': () => app.createFree(),
  paid: () => app.createPaying(),
  'first payment on its way': async () => {
    const organization = await app.createFree();
    app.pay((await app.startCheckout(organization)).json().id, 'slow');
    await app.follow(organization);
    return organization;
  },
  'plan changed': async () => {
    const paying = await app.createPaying();
    await app.call('/billing/subscription/change-plan', {
      method: 'POST',
      token: paying.token,
      body: { tier: 'business' },
    });
    await app.follow(paying);
    return paying;
  },
  'canceled for the end of the period': async () => {
    const paying = await app.createPaying();
    await app.call('/billing/subscription/cancel', { method: 'POST', token: paying.token, body: {} });
    await app.follow(paying);
    return paying;
  },
  ended: async () => {
    const paying = await SITUATIONS['canceled for the end of the period']?.();
    if (!paying) throw new Error('missing situation');
    await app.advanceDays(paying, 30);
    return paying;
  },
  paused: async () => {
    const paying = await app.createPaying();
    paying.subscription.status = 'paused';
    emitSubscription(app.ledger, paying.subscription, 'updated');
    await app.follow(paying);
    return paying;
  },
  'payment failed': failed,
  'failed twice': async () => fail(await app.createPaying(), 34),
  'paid within the grace': async () => {
    const paying = await failed();
    await pay(paying);
    await app.follow(paying);
    return paying;
  },
  'grace over, no open invoice': async () => {
    const paying = await failed();
    for (const invoice of app.invoicesOf(paying.subscription, 'open')) invoice.status = 'void';
    await app.advanceDays(paying, 20);
    return paying;
  },
  'grace over, invoice open': suspended,
  'paid after the suspension': async () => {
    const paying = await suspended();
    await pay(paying);
    await app.follow(paying);
    return paying;
  },
  'old invoice paid, the newer one declined': async () => {
    const paying = await fail(await app.createPaying(), 61);
    const [old] = app.invoicesOf(paying.subscription, 'open');
    expect(app.invoicesOf(paying.subscription, 'draft')).toHaveLength(1);
    await pay(paying, old);
    app.setCard(paying.subscription, 'declined');
    await app.follow(paying);
    expect(app.invoicesOf(paying.subscription, 'open')).toHaveLength(1);
    return paying;
  },
  'old invoice paid, the newer one too': async () => {
    const paying = await fail(await app.createPaying(), 61);
    await pay(paying);
    expect(paying.subscription.status).toBe('unpaid');
    await app.follow(paying);
    return paying;
  },
  'ended within the grace': async () => {
    const paying = await failed();
    endSubscription(app.ledger, paying.subscription);
    await app.follow(paying);
    return paying;
  },
  'ended after the suspension': async () => {
    const paying = await suspended();
    endSubscription(app.ledger, paying.subscription);
    await app.follow(paying);
    return paying;
  },
  'suspended for abuse, too, and paid': async () => {
    const paying = await suspended();
    await suspendByStaff(paying, 'abuse');
    await pay(paying);
    await app.follow(paying);
    return paying;
  },
  'failed again after it was paid': async () => {
    const paying = await failed();
    await pay(paying);
    await app.follow(paying);
    return fail(paying);
  },
  'more time after the suspension': async () => {
    const paying = await suspended();
    await extend(paying, 7);
    await app.follow(paying);
    return paying;
  },
};

async function extend(
  { organizationId }: TestOrganization,
  days: number,
  now = new Date(app.ledger.now * 1_000),
): Promise<void> {
  const graceId = await graceOf(organizationId);
  await app.worker.systemTransaction((transaction) =>
    app.work.graces.extend(transaction, { graceId, days, now }),
  );
}

async function graceOf(organizationId: string): Promise<string> {
  const [grace] = await query<{ id: string }>(
    app.worker,
    sql`select id from payment_graces where org_id = ${organizationId} order by started_at desc limit 1`,
  );
  return grace?.id ?? '';
}

async function lastEmailOf({ organizationId }: TestOrganization) {
  const [last] = await query<{ template: TemplateName; params: never }>(
    app.worker,
    sql`select template, params from notifications where org_id = ${organizationId} order by created_at desc, id desc limit 1`,
  );
  if (!last) throw new Error('no email');
  return renderEmail(renderTemplate(last.template, last.params), app.config.PUBLIC_URL);
}

const table = readFileSync(new URL('../../docs/billing.md', import.meta.url), 'utf8')
  .split('## States')[1]
  ?.split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| situation'))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  ) as [string, string, string, string, string][];

describe('the table of states', () => {
  test('has every situation, and no other', () => {
    expect(table.map(([situation]) => situation)).toEqual(Object.keys(SITUATIONS));
  });

  test.each(table)('%s: subscription %s, grace %s, tier %s, organization %s', async (...row) => {
    const [situation, subscription, grace, tier, status] = row;
    const reach = SITUATIONS[situation];
    if (!reach) throw new Error(`${situation} is unknown`);
    const state = await app.stateOf(await reach());
    expect(state).toEqual({
      tier,
      status,
      subscription: subscription === 'none' ? null : subscription,
      grace: grace === 'none' ? null : grace,
    });
  });
});

describe('the emails', () => {
  test('name the failure, remind three times, and say when it is over', async () => {
    const paying = await suspended();
    await pay(paying);
    await app.follow(paying);
    expect(await app.emailsOf(paying)).toEqual([
      'payment-failed',
      'payment-reminder',
      'payment-reminder',
      'payment-reminder',
      'suspended',
      'reinstated',
    ]);
  });

  test('say so if the payment arrives before the suspension', async () => {
    const paying = await failed();
    await pay(paying);
    await app.follow(paying);
    expect(await app.emailsOf(paying)).toEqual(['payment-failed', 'payment-recovered']);
  });

  test('lead to the invoice that a bank wants confirmed, once', async () => {
    const paying = await app.createPaying();
    app.setCard(paying.subscription, 'bank');
    await app.advanceDays(paying, 34);
    const emails = await app.emailsOf(paying);
    expect(emails.filter((name) => name === 'payment-action-required')).toHaveLength(1);
    expect(emails.filter((name) => name === 'payment-failed')).toHaveLength(1);
  });
});

describe('an overdue payment', () => {
  test('for which there is more time lifts no suspension that staff set before', async () => {
    const paying = await failed();
    await suspendByStaff(paying, 'payment');
    await extend(paying, 7);
    expect(await app.stateOf(paying)).toMatchObject({ grace: 'waiting', status: 'suspended' });
  });

  test('has one grace, whatever the number of open invoices', async () => {
    const paying = await failed();
    const second = addInvoice(app.ledger, paying.subscription, { purpose: 'cycle', status: 'open' });
    attemptPayment(app.ledger, second);
    expect(app.invoicesOf(paying.subscription, 'open')).toHaveLength(2);
    await app.follow(paying);
    await app.advanceDays(paying, 10);
    const graces = await query(
      app.worker,
      sql`select id from payment_graces where org_id = ${paying.organizationId}`,
    );
    expect(graces).toHaveLength(1);
    const emails = await app.emailsOf(paying);
    expect(emails.filter((name) => name === 'payment-failed')).toHaveLength(1);
  });

  test('is described alike by the API, the page and the emails', async () => {
    const paying = await failed();
    const owner = await createTestSession(app.worker, paying.ownerId, { factors: ['totp'] });
    const browser = createPageClient(app);
    browser.cookies.set('session', owner.token);
    const read = async () => ({
      api: (await app.call('/billing/subscription', { token: paying.token })).json(),
      page: (await browser.open(`/billing?org=${paying.organizationId}`)).body,
      email: (await lastEmailOf(paying)).text,
    });
    const first = await read();
    const suspendAt = formatUtc(new Date(first.api.suspend_at));
    const nextAttemptAt = formatUtc(new Date(first.api.next_attempt_at));
    for (const text of [first.email, first.page]) {
      expect(text).toContain(suspendAt);
      expect(text).toContain(nextAttemptAt);
      expect(text).toContain('Incoming mail is still stored, and you can read and export everything.');
    }
    // What the API would refuse is not offered.
    expect(first.page).not.toContain('Show what it costs');
    // A reminder and an extension move them together.
    await extend(paying, 5);
    await app.advanceDays(paying, 17);
    const later = await read();
    expect(later.api.suspend_at).not.toBe(first.api.suspend_at);
    expect(await app.emailsOf(paying)).toContain('payment-reminder');
    for (const text of [later.email, later.page])
      expect(text).toContain(formatUtc(new Date(later.api.suspend_at)));
  });
});

test('a subscription on a test clock is judged by the time of the clock, so that a grace can be tried out', async () => {
  const { syncs } = app.createWork(() => new Date());
  const paying = await app.createPaying();
  app.setCard(paying.subscription, 'declined');
  for (const days of [31, 9, 7]) {
    advanceClock(app.ledger, days * 86_400);
    await syncs.sync(paying.subscription.id);
  }
  expect(await app.stateOf(paying)).toMatchObject({ status: 'suspended', grace: 'suspended' });
  expect(await app.emailsOf(paying)).toEqual(['payment-failed', 'payment-reminder', 'suspended']);
  await extend(paying, 2, new Date());
  await syncs.sync(paying.subscription.id);
  expect(await app.stateOf(paying)).toMatchObject({ status: 'active', grace: 'waiting' });
  app.ledger.events.length = 0;
});

describe('billing while suspended', () => {
  test('works: the portal, the subscription and a cancellation; sending does not', async () => {
    const { token } = await suspended();
    const subscription = await app.call('/billing/subscription', { token });
    expect(subscription.json()).toMatchObject({ status: 'unpaid', suspended_since: expect.any(String) });
    expect(subscription.json().open_invoice_url).toContain('/invoices/');
    expect((await app.call('/billing/portal', { method: 'POST', token })).statusCode).toBe(200);
    expect(
      (await app.call('/billing/subscription/cancel', { method: 'POST', token, body: {} })).statusCode,
    ).toBe(200);
    const refused = await app.call('/inboxes', { method: 'POST', token, body: {} });
    expect(refused.json()).toMatchObject({ code: 'organization_suspended' });
  });

  test('does not suspend again what staff reinstated for the payment', async () => {
    const paying = await suspended();
    const { outbox } = recordingOutbox();
    const suspensions = createSuspensionService({ outbox, onChange: async () => undefined });
    const { organizationId } = paying;
    await app.worker.systemTransaction((transaction) =>
      suspensions.reinstate(
        transaction,
        { type: 'organization', id: organizationId, organizationId },
        { reason: 'payment', note: 'Test', actor: { kind: 'staff', id: 'usr_test' } },
      ),
    );
    await app.advanceDays(paying, 2);
    expect(await app.stateOf(paying)).toMatchObject({ status: 'active', grace: 'suspended' });
  });
});
