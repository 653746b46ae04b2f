import { beforeEach, describe, expect, test } from '@jest/globals';
import { createAccountQuickly, type QuickAccount } from '../support/accounts.ts';
import { impersonate } from '../support/impersonation.ts';
import { createPageClient, type PageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp();
let person: QuickAccount;
let browser: PageClient;

const browserOf = (token: string): PageClient => {
  const client = createPageClient(app);
  client.cookies.set('session', token);
  return client;
};
const limits = async () => (await app.call('/org/limits', { token: person.token })).json();
const textOf = (html: string) => html.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

beforeEach(async () => {
  person = await createAccountQuickly(app);
  browser = browserOf(person.token);
  await app.worker.db
    .updateTable('organizations')
    .set({ tier: 'free' })
    .where('id', '=', person.organizationId)
    .execute();
});

describe('the page of usage', () => {
  test('shows each counter with its limit, and leads to the list behind it', async () => {
    for (let count = 0; count < 2; count += 1)
      await app.call('/inboxes', { method: 'POST', token: person.token, body: {} });
    const page = (await browser.open('/usage')).body;
    const text = textOf(page);
    const { tier, inboxes } = await limits();
    expect(text).toContain(`Your plan: ${tier}`);
    expect(inboxes.current).toBe(2);
    expect(text).toMatch(/Inboxes 2 \S+ of the plan/);
    for (const path of ['/messages', '/requests', '/webhooks', '/inboxes', '/domains'])
      expect(page).toContain(`<th scope="row"><a href="${path}">`);
    expect(text).toContain('No daily cap holds.');
  });

  test('shows the caps of today and when they end', async () => {
    await app.call('/org/policies', {
      method: 'PATCH',
      token: person.token,
      body: { daily_send_cap_per_inbox: 1_234 },
    });
    const text = textOf((await browser.open('/usage')).body);
    expect(text).toContain('1,234 messages that each inbox may send in a day');
    expect(text).toContain('The caps start again');
  });

  test.each(['mail', 'calls', 'webhooks', 'storage'])('draws the history of %s', async (graph) => {
    const page = await browser.open(`/usage?graph=${graph}&days=7`);
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain('the last 7 days</figcaption>');
    expect(page.body.match(/<tr><th scope="row">\d{4}-\d{2}-\d{2}<\/th>/g)).toHaveLength(7);
  });

  test('is read by a viewer and by staff, who change nothing', async () => {
    const { organizationId } = person;
    const viewer = await createTestUser(app.worker, { organizationId, role: 'viewer' });
    const theirs = browserOf((await createTestSession(app.worker, viewer)).token);
    const page = (await theirs.open('/usage')).body;
    expect(page).toContain('This month');
    expect(page).not.toContain('<form method="post" action="/usage');
    expect(page).not.toContain('Another plan');
    const support = await impersonate(app, organizationId);
    const staff = browserOf(support.staff.token);
    staff.cookies.set('impersonation', support.token);
    const seen = await staff.open('/usage');
    expect(seen.statusCode).toBe(200);
    expect(seen.body).not.toContain('<form method="post" action="/usage');
  });
});

describe('own limits', () => {
  test('are set and removed, storage in MiB, and only what was changed', async () => {
    await browser.open('/usage');
    await browser.submit('/usage/limits', {
      own_messages_sent: '100',
      warn_messages_sent: '60',
      own_storage_bytes: '5',
    });
    expect(browser.path).toBe('/usage?notice=limits-changed');
    expect((await limits()).counters).toMatchObject({
      messages_sent: { own_limit: 100, warning_threshold: 60 },
      storage_bytes: { own_limit: 5 * 1024 ** 2, warning_threshold: 80 },
      api_calls: { own_limit: null },
    });
    expect(textOf((await browser.open('/usage')).body)).toContain('100 set by you');
    await browser.submit('/usage/limits', { own_messages_sent: '', warn_messages_sent: '60' });
    expect((await limits()).counters).toMatchObject({
      messages_sent: { own_limit: null, warning_threshold: 60 },
      storage_bytes: { own_limit: 5 * 1024 ** 2 },
    });
  });

  test.each([
    [{ own_messages_sent: '999999999999' }, 'own_messages_sent'],
    [{ own_messages_sent: '-1' }, 'own_messages_sent'],
    [{ warn_api_calls: '0' }, 'warn_api_calls'],
    [{ warn_api_calls: '100' }, 'warn_api_calls'],
  ])('refuses %j at its field, and keeps what was entered', async (fields, name) => {
    await browser.open('/usage');
    const page = await browser.submit('/usage/limits', { own_webhook_deliveries: '17', ...fields });
    expect(page.statusCode).toBe(400);
    expect(page.body).toContain(`id="field-${name}-error"`);
    expect(page.body).toContain('value="17"');
    expect(page.body).toContain('id="limits" open');
    expect((await limits()).counters.webhook_deliveries.own_limit).toBeNull();
  });

  test('are bounded without a limit of the plan, too', async () => {
    await app.worker.db
      .updateTable('organizations')
      .set({ tier: 'enterprise' })
      .where('id', '=', person.organizationId)
      .execute();
    await browser.open('/usage');
    const page = await browser.submit('/usage/limits', { own_storage_bytes: '999999999999' });
    expect(page.statusCode).toBe(400);
    expect(page.body).toContain('id="field-own_storage_bytes-error"');
  });

  test('say that nothing was changed', async () => {
    await browser.open('/usage');
    const page = await browser.submit('/usage/limits', {});
    expect(page.statusCode).toBe(400);
    expect(page.body).toContain('Nothing is changed.');
  });
});

describe('another plan', () => {
  test('is asked for once, and the request stands on the page', async () => {
    await browser.open('/usage');
    const { tier } = await limits();
    const wanted = tier === 'business' ? 'developer' : 'business';
    const note = 'We send <b>more</b>';
    await browser.submit('/usage/upgrade', { tier: wanted, note });
    expect(browser.path).toBe('/usage?notice=upgrade-requested');
    const page = (await browser.open('/usage')).body;
    expect(page).toContain('We send &lt;b&gt;more&lt;/b&gt;');
    expect(page).toContain('waits for an answer');
    expect(page).not.toContain('action="/usage/upgrade"');
    expect((await app.call('/org/upgrade-requests', { token: person.token })).json().data).toMatchObject([
      { tier: wanted, note, status: 'open' },
    ]);
  });

  test('needs a reason', async () => {
    await browser.open('/usage');
    const page = await browser.submit('/usage/upgrade', { tier: 'enterprise', note: ' ' });
    expect(page.statusCode).toBe(400);
    expect(page.body).toContain('id="field-note-error"');
  });
});
