import { describe, expect, test } from '@jest/globals';
import type { MemberRole } from '../../domain/identity/roles.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

/** The browser of a member of a new organization. */
async function arrange(role: MemberRole = 'developer') {
  const organization = await createOrganization(app.worker);
  const { organizationId, token } = organization;
  const userId = await createTestUser(app.worker, { organizationId, role });
  const browser = createPageClient(app);
  browser.cookies.set('session', (await createTestSession(app.worker, userId)).token);
  const get = async <Body>(path: string) => (await app.call(path, { token })).json<Body>();
  return { organization, organizationId, browser, get };
}

const HOSTILE = `<script>alert(1)</script> & "${'x'.repeat(180)}"`;

describe('the page of inboxes', () => {
  test('says what to do while there is none, and creates one by name and domain', async () => {
    const { browser, get } = await arrange();
    const empty = await browser.open('/inboxes');
    expect([empty.statusCode, empty.body]).toEqual([200, expect.stringContaining('No inboxes yet')]);
    await browser.open('/inboxes/new');
    const username = `support-${Date.now()}`;
    const created = await browser.submit('/inboxes/new', {
      display_name: 'Support agent',
      username,
      domain: 'mail.test',
    });
    expect(created.body).toContain('The inbox is created.');
    expect(browser.path).toMatch(/^\/inboxes\/inb_\w+/);
    const { data } = await get<{ data: object[] }>('/inboxes');
    expect(data).toEqual([
      expect.objectContaining({ email: `${username}@mail.test`, display_name: 'Support agent' }),
    ]);
  });

  test('generates an address if none is entered', async () => {
    const { browser, get } = await arrange();
    await browser.open('/inboxes/new');
    await browser.submit('/inboxes/new', { display_name: '', username: '', domain: 'mail.test' });
    const { data } = await get<{ data: { email: string; display_name: null }[] }>('/inboxes');
    expect(data).toEqual([
      expect.objectContaining({ email: expect.stringMatching(/@mail\.test$/), display_name: null }),
    ]);
  });

  test('creates one inbox, however often and at the same time the form is submitted', async () => {
    const { browser, get } = await arrange();
    const page = await browser.open('/inboxes/new');
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.body) ?? [];
    const [, key = ''] = /name="key" value="([^"]+)"/.exec(page.body) ?? [];
    const fields = { csrf, key, display_name: '', username: '', domain: 'mail.test' };
    const answers = await Promise.all([1, 2, 3].map(() => browser.post('/inboxes/new', fields)));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([303, 303, 303]);
    expect(new Set(answers.map(({ headers }) => headers.location)).size).toBe(1);
    expect((await get<{ data: object[] }>('/inboxes')).data).toHaveLength(1);
  });

  test('says at the field why an address cannot be created, and keeps what was entered', async () => {
    const { browser, organization } = await arrange();
    const { username } = await createInbox(app.worker, organization);
    await browser.open('/inboxes/new');
    const refused = await browser.submit('/inboxes/new', {
      display_name: HOSTILE,
      username: 'not an address',
      domain: 'mail.test',
    });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('id="field-username-error"');
    expect(refused.body).toContain('value="not an address"');
    expect(refused.body).not.toContain('<script>alert');
    const taken = await browser.submit('/inboxes/new', { display_name: '', username, domain: 'mail.test' });
    expect([taken.statusCode, taken.body]).toEqual([409, expect.stringContaining(`value="${username}"`)]);
  });

  test('finds by a part of the address or name, and by state', async () => {
    const { browser, organization } = await arrange();
    const [first, second] = [
      await createInbox(app.worker, organization),
      await createInbox(app.worker, organization),
    ];
    const both = await browser.open('/inboxes');
    for (const { email } of [first, second]) expect(both.body).toContain(email);
    const found = await browser.open(`/inboxes?q=${first.username.slice(-8)}`);
    expect(found.body).toContain(first.email);
    expect(found.body).not.toContain(second.email);
    expect((await browser.open('/inboxes?state=paused')).body).toContain('No such inbox');
    expect((await browser.open('/inboxes?q=&state=')).body).toContain(second.email);
  });

  test('shows when something last happened, and what was received in 24 hours', async () => {
    const { browser, organization } = await arrange();
    const { inbox, receive } = await arrangeInbox(
      app.worker,
      {},
      await createInbox(app.worker, organization),
    );
    expect((await browser.open('/inboxes')).body).toContain('none yet');
    await receive(mail({ From: 'ada@people.example', Subject: 'One' }));
    await receive(mail({ From: 'ada@people.example', Subject: 'Two' }));
    const { body } = await browser.open('/inboxes');
    expect(body).not.toContain('none yet');
    expect(body).toContain(`/inboxes/${inbox.id}?direction=inbound">2</a>`);
    expect(body).toContain(`/inboxes/${inbox.id}?direction=outbound">0</a>`);
  });

  test('pauses with a reason, and an owner resumes', async () => {
    const { browser, organization, get } = await arrange('owner');
    const inbox = await createInbox(app.worker, organization);
    await browser.open('/inboxes');
    const paused = await browser.submit(`/inboxes/${inbox.id}/pause`, {
      reason: 'It answers itself',
    });
    expect(paused.body).toContain('Sending is paused.');
    expect(await get(`/inboxes/${inbox.id}`)).toMatchObject({
      send_paused: true,
      send_paused_reason: 'It answers itself',
      send_paused_by: 'person',
    });
    expect((await browser.open(`/inboxes/${inbox.id}`)).body).toContain('It answers itself');
    await browser.open('/inboxes');
    expect((await browser.submit(`/inboxes/${inbox.id}/resume`)).body).toContain('sends again');
    expect(browser.path).toBe(`/inboxes?notice=inbox-resumed#${inbox.id}`);
    const { body } = await browser.open('/inboxes');
    expect(body).toContain(`<tr id="${inbox.id}">`);
    expect(body).toContain(`>Pause…<span class="visually-hidden"> ${inbox.email}</span></button>`);
    await browser.open(`/inboxes/${inbox.id}`);
    await browser.submit(`/inboxes/${inbox.id}/pause`, { reason: 'Again' });
    expect(browser.path).toBe(`/inboxes/${inbox.id}?notice=inbox-paused`);
    await browser.submit(`/inboxes/${inbox.id}/resume`);
    expect(await get(`/inboxes/${inbox.id}`)).toMatchObject({ send_paused: false });
  });

  test('offers a viewer no change, and refuses one', async () => {
    const { browser, organization, get } = await arrange('viewer');
    const inbox = await createInbox(app.worker, organization);
    for (const path of ['/inboxes', `/inboxes/${inbox.id}`, `/inboxes/${inbox.id}/settings`]) {
      const { statusCode, body } = await browser.open(path);
      expect([path, statusCode]).toEqual([path, 200]);
      expect(body).not.toMatch(/action="[^"]*\/(?:pause|resume|delete|compose|labels|rotate)"/);
      expect(body).not.toContain('/compose');
    }
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec((await browser.open('/inboxes')).body) ?? [];
    const refused = await browser.post(`/inboxes/${inbox.id}/pause`, { csrf, back: 'list', reason: 'no' });
    expect(refused.statusCode).toBe(403);
    expect((await browser.open('/inboxes/new')).statusCode).toBe(403);
    expect(await get(`/inboxes/${inbox.id}`)).toMatchObject({ send_paused: false });
  });

  test('shows nothing of another organization', async () => {
    const { browser } = await arrange();
    const foreign = await createInbox(app.worker, await createOrganization(app.worker));
    expect((await browser.open('/inboxes')).body).not.toContain(foreign.email);
    for (const path of ['', '/settings', '/live'])
      expect((await browser.open(`/inboxes/${foreign.id}${path}`)).statusCode).toBe(404);
  });
});

describe('the page of an inbox', () => {
  test('shows threads with their newest messages, and finds with the operators of the API', async () => {
    const { browser, organization } = await arrange();
    const { inbox, receive } = await arrangeInbox(
      app.worker,
      {},
      await createInbox(app.worker, organization),
    );
    expect((await browser.open(`/inboxes/${inbox.id}`)).body).toContain('No mail yet');
    const { message } = await receive(
      mail({ From: `"Ada" <ada@people.example>`, Subject: HOSTILE }, 'The invoice is due <b>now</b>'),
    );
    await receive(mail({ From: 'bob@people.example', Subject: 'Lunch' }, 'At noon?'));
    const timeline = await browser.open(`/inboxes/${inbox.id}`);
    expect(timeline.body).toContain(`<live-region src="/inboxes/${inbox.id}/live">`);
    for (const shown of [`/messages/${message?.id}`, `/threads/${message?.threadId}`, 'Lunch', 'At noon?'])
      expect(timeline.body).toContain(shown);
    expect(timeline.body).toContain('due &lt;b&gt;now');
    expect(timeline.body).not.toContain('<script>alert');
    const found = await browser.open(`/inboxes/${inbox.id}?q=${encodeURIComponent('from:bob lunch')}`);
    expect(found.body).toContain('Lunch');
    expect(found.body).not.toContain('The invoice is due');
    expect((await browser.open(`/inboxes/${inbox.id}?label=none`)).body).toContain('Nothing found');
    const wrong = await browser.open(`/inboxes/${inbox.id}?q=${encodeURIComponent('has:nothing')}`);
    expect([wrong.statusCode, wrong.body]).toEqual([400, expect.stringContaining('id="field-q-error"')]);
  });

  test('leads to older threads without a gap', async () => {
    const { browser, organization } = await arrange();
    const { inbox, receive } = await arrangeInbox(
      app.worker,
      {},
      await createInbox(app.worker, organization),
    );
    for (let count = 1; count <= 27; count += 1)
      await receive(mail({ From: 'ada@people.example', Subject: `Subject number ${count}.` }));
    const first = await browser.open(`/inboxes/${inbox.id}`);
    expect(first.body).toContain('Subject number 3.');
    expect(first.body).not.toContain('Subject number 2.');
    const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first.body) ?? [];
    const second = await browser.open(next.replaceAll('&amp;', '&'));
    for (const subject of ['Subject number 2.', 'Subject number 1.']) expect(second.body).toContain(subject);
    expect(second.body).not.toContain('Subject number 3.');
    expect(second.body).not.toContain('<live-region');
  });

  test('its settings change name and aliases, and say at the field what is wrong', async () => {
    const { browser, organization, get } = await arrange();
    const inbox = await createInbox(app.worker, organization);
    const settings = `/inboxes/${inbox.id}/settings`;
    await browser.open(settings);
    const alias = `second-${inbox.username}@mail.test`;
    const saved = await browser.submit(settings, { display_name: ' Sales ', aliases: `${alias}\n` });
    expect(saved.body).toContain('Saved.');
    expect(await get(`/inboxes/${inbox.id}`)).toMatchObject({ display_name: 'Sales', aliases: [alias] });
    const refused = await browser.submit(settings, { display_name: 'Kept', aliases: 'no-address' });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('id="field-aliases-error"');
    expect(refused.body).toContain('value="Kept"');
    expect(await get(`/inboxes/${inbox.id}`)).toMatchObject({ display_name: 'Sales' });
  });

  test('the SMTP password is shown once', async () => {
    const { browser, organization } = await arrange();
    const inbox = await createInbox(app.worker, organization);
    await browser.open(`/inboxes/${inbox.id}/settings`);
    const rotated = await browser.submit(`/inboxes/${inbox.id}/credentials/rotate`);
    const [, password = ''] = /<code>([0-9A-Za-z]{32})<\/code>/.exec(rotated.body) ?? [];
    expect(password).toHaveLength(32);
    const { body } = await browser.open(`/inboxes/${inbox.id}/settings`);
    expect(body).not.toContain(password);
    expect(body).toContain('Replace the password');
  });

  test('is deleted after a confirmation, with its messages if the person says so', async () => {
    const { browser, organization, get } = await arrange();
    const [kept, purged] = [
      await createInbox(app.worker, organization),
      await createInbox(app.worker, organization),
    ];
    await browser.open(`/inboxes/${kept.id}/settings`);
    expect((await browser.submit(`/inboxes/${kept.id}/delete`)).body).toContain('The inbox is deleted.');
    for (const path of ['', '/settings']) {
      const page = await browser.open(`/inboxes/${kept.id}${path}`);
      expect([page.statusCode, page.body]).toEqual([
        200,
        expect.stringContaining('Its messages stay readable'),
      ]);
      expect(page.body).not.toMatch(/compose|<form[^>]*action="\/inboxes\/[^"]*\/(?:settings|pause|delete)"/);
    }
    await browser.open(`/inboxes/${purged.id}/settings`);
    await browser.submit(`/inboxes/${purged.id}/delete`, { purge: 'on' });
    expect(await get(`/inboxes/${kept.id}`)).toMatchObject({ code: 'not_found' });
    expect(await get(`/inboxes/${purged.id}`)).toMatchObject({ status: 'purging' });
  });
});

describe('labels of selected messages', () => {
  test('are added and removed, and say what was wrong', async () => {
    const { browser, organization, get } = await arrange();
    const { inbox, receive } = await arrangeInbox(
      app.worker,
      {},
      await createInbox(app.worker, organization),
    );
    const ids: string[] = [];
    for (const subject of ['One', 'Two', 'Three']) {
      const { message } = await receive(mail({ From: 'ada@people.example', Subject: subject }));
      ids.push(message?.id ?? '');
    }
    const [one = '', two = '', three = ''] = ids;
    const labelsOf = async (id: string) => (await get<{ labels: string[] }>(`/messages/${id}`)).labels;
    const action = `/inboxes/${inbox.id}/labels`;
    await browser.open(`/inboxes/${inbox.id}`);
    const changed = await browser.submit(action, { ids: [one, two], add: 'urgent, <b>', remove: '' });
    expect(changed.body).toContain('The labels are changed.');
    expect(changed.body).toContain('&lt;b&gt;</a>');
    expect([await labelsOf(one), await labelsOf(two), await labelsOf(three)]).toEqual([
      ['urgent', '<b>'],
      ['urgent', '<b>'],
      [],
    ]);
    const found = await browser.open(`/inboxes/${inbox.id}?label=urgent`);
    expect(found.body).not.toContain('Three');
    await browser.submit(`${action}?label=urgent`, { ids: one, add: '', remove: 'urgent' });
    expect(await labelsOf(one)).toEqual(['<b>']);
    const none = await browser.submit(`${action}?label=urgent`, { add: 'x', remove: '' });
    expect([none.statusCode, none.body]).toEqual([400, expect.stringContaining('has no message')]);
    const empty = await browser.submit(`${action}?label=urgent`, { ids: two, add: ' , ', remove: '' });
    expect(empty.statusCode).toBe(400);
    expect(empty.body).toContain('id="field-add-error"');
    expect(empty.body).toContain(`value="${two}" checked`);
  });
});
