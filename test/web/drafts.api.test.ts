import { describe, expect, test } from '@jest/globals';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { setPolicies } from '../support/policies.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const s3 = useObjectStorage();
const app = useTestApp(() => ({ config: s3.environment }));

interface Draft {
  id: string;
  version: number;
  subject: string | null;
  text_body: string | null;
  html_body: string | null;
  to_addresses: string[];
  send_at: string | null;
  send_status: string;
}

const TOMORROW = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16);

async function arrange(role: 'developer' | 'viewer' = 'developer') {
  const organization = await createOrganization(app.worker);
  const { organizationId, token } = organization;
  const inbox = await createInbox(app.worker, organization);
  const userId = await createTestUser(app.worker, { organizationId, role });
  const browser = createPageClient(app);
  browser.cookies.set('session', (await createTestSession(app.worker, userId)).token);
  const call = (method: 'GET' | 'PATCH' | 'POST' | 'DELETE', path: string, body?: unknown) =>
    app.call(path, { method, token, body });
  const make = async (content: object = {}) =>
    (
      await call('POST', `/inboxes/${inbox.id}/drafts`, {
        to: ['ada@people.example'],
        subject: 'Offer <b>1</b>',
        text_body: 'One\nTwo',
        ...content,
      })
    ).json<Draft>();
  const get = async (id: string) => (await call('GET', `/drafts/${id}`)).json<Draft>();
  return { organization, inbox, browser, call, make, get };
}

/** What a browser sends of the form, unless the person changes it. */
const FORM = {
  to: 'ada@people.example',
  cc: '',
  bcc: '',
  subject: 'Offer <b>1</b>',
  text_body: 'One\r\nTwo',
  send_at: '',
  intent: 'save',
};

describe('the list of drafts', () => {
  test('shows each with its state and maker, and filters by state', async () => {
    const { browser, make, inbox } = await arrange();
    expect((await browser.open('/drafts')).body).toContain('No drafts');
    const { id } = await make();
    await make({ subject: 'Later', send_at: `${TOMORROW}:00Z` });
    const page = await browser.open('/drafts');
    for (const shown of [`/drafts/${id}`, 'Offer &lt;b&gt;1&lt;/b&gt;', 'scheduled', 'API key', inbox.email])
      expect(page.body).toContain(shown);
    const scheduled = await browser.open('/drafts?status=scheduled');
    expect(scheduled.body).toContain('Later');
    expect(scheduled.body).not.toContain(`/drafts/${id}`);
    expect((await browser.open(`/drafts?status=&inbox_id=${inbox.id}`)).body).toContain(`/drafts/${id}`);
    expect((await browser.open('/drafts?status=failed')).body).toContain('None in this state');
    expect((await browser.open('/drafts?inbox_id=inb_unknown')).statusCode).toBe(404);
  });
});

describe('the environments', () => {
  test('have their own lists, and the switch of the frame leads to each', async () => {
    const { browser, organization, make } = await arrange();
    const { sandboxEnvironmentId, token } = organization;
    const sandbox = await createInbox(app.worker, organization, { environmentId: sandboxEnvironmentId });
    await make({ subject: 'Of production' });
    const made = await app.call(`/inboxes/${sandbox.id}/drafts`, {
      method: 'POST',
      token,
      headers: { 'x-env-id': sandboxEnvironmentId },
      body: { subject: 'Of the sandbox' },
    });
    expect(made.statusCode).toBe(201);
    const env = `?env=${sandboxEnvironmentId}`;
    const production = await browser.open('/drafts');
    expect(production.body).toContain(`href="/overview${env}"`);
    expect(production.body).toContain('Of production');
    expect(production.body).not.toContain('Of the sandbox');
    const page = await browser.open(`/drafts${env}`);
    expect(page.body).not.toContain('Of production');
    expect(page.body).toContain(`href="/drafts/${made.json().id}${env}"`);
    expect(page.body).toMatch(/href="\/overview\?env=env_[^"]*"[^>]*>\s*<bdi>production/);
  });
});

describe('a draft', () => {
  test('is changed in the fields that the person changed, and only there', async () => {
    const { browser, make, get } = await arrange();
    const { id } = await make({ cc: [{ email: 'bob@people.example', name: 'Bob "B." Ross' }] });
    await browser.open(`/drafts/${id}`);
    const cc = '"Bob \\"B.\\" Ross" <bob@people.example>';
    const same = await browser.submit(`/drafts/${id}`, { ...FORM, cc });
    expect(same.body).toContain('Saved.');
    expect((await get(id)).version).toBe(1);
    await browser.submit(`/drafts/${id}`, {
      ...FORM,
      cc,
      to: 'Ada <ada@people.example>, eve@people.example',
      subject: 'New',
    });
    expect(await get(id)).toMatchObject({
      version: 2,
      subject: 'New',
      text_body: 'One\nTwo',
      to_addresses: ['ada@people.example', 'eve@people.example'],
      cc: [{ email: 'bob@people.example', name: 'Bob "B." Ross' }],
    });
  });

  test.each([
    ['to', 'ada', 'To: “ada” must have the form name@domain.'],
    ['to', 'bob; ada@people.example', 'To: “bob” must have'],
    ['cc', '"Ada, B." <a@b.example>, Eve <e@e', 'Cc: “Eve &lt;e@e” '],
    [
      'bcc',
      Array.from({ length: 51 }, (_, index) => `p${index}@people.example`).join(),
      'To: there are 52 recipients',
    ],
    ['cc', 'a@b.example, b@', 'Cc: “b@”'],
    ['send_at', '2020-01-01T00:00', 'Send at is in the past.'],
    ['send_at', 'x', 'Send at is not a time.'],
    ['subject', 'a\tb', 'id="field-subject-error">'],
  ])('keeps a wrong %s in its field, with what is wrong beside it', async (field, value, message) => {
    const { browser, make, get } = await arrange();
    const { id } = await make();
    await browser.open(`/drafts/${id}`);
    const refused = await browser.submit(`/drafts/${id}`, { ...FORM, text_body: 'Mine', [field]: value });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain(message);
    expect(refused.body).toContain('Mine</textarea>');
    expect((await get(id)).version).toBe(1);
  });

  test('shows both texts to a person who was overtaken, loses nothing, and then takes theirs', async () => {
    const { browser, make, get, call } = await arrange();
    const { id } = await make();
    await browser.open(`/drafts/${id}`);
    await call('PATCH', `/drafts/${id}`, { text_body: 'One\nTheirs' });
    const refused = await browser.submit(`/drafts/${id}`, { ...FORM, text_body: 'One\r\nMine' });
    expect(refused.statusCode).toBe(412);
    expect(refused.body).toContain('Someone else changed the draft');
    expect(refused.body).toMatch(/<del><span class="hidden">Saved: <\/span>Theirs/);
    expect(refused.body).toMatch(/<ins><span class="hidden">Yours: <\/span>Mine/);
    expect(refused.body).toContain('Mine</textarea>');
    expect((await get(id)).text_body).toBe('One\nTheirs');
    await browser.submit(`/drafts/${id}`, { ...FORM, text_body: 'One\r\nMine' });
    expect((await get(id)).text_body).toBe('One\nMine');
  });

  test('is scheduled, unscheduled, and sent', async () => {
    const { browser, make, get } = await arrange();
    const { id } = await make();
    await browser.open(`/drafts/${id}`);
    const scheduled = await browser.submit(`/drafts/${id}`, { ...FORM, send_at: TOMORROW });
    expect(scheduled.body).toContain('scheduled');
    expect(await get(id)).toMatchObject({ send_status: 'scheduled', send_at: `${TOMORROW}:00.000Z` });
    const unscheduled = await browser.submit(`/drafts/${id}/unschedule`);
    expect(unscheduled.body).toContain('not sent by itself any more');
    expect(await get(id)).toMatchObject({ send_status: 'draft', send_at: null });
    const sent = await browser.submit(`/drafts/${id}`, { ...FORM, subject: 'Final', intent: 'send' });
    expect(browser.path).toMatch(/^\/messages\/msg_.*notice=draft-sent/);
    expect(sent.statusCode).not.toBe(500);
    expect((await get(id)) as object).toMatchObject({ message_id: expect.any(String) });
    await browser.open(`/drafts/${id}`);
    expect(browser.path).toMatch(/^\/messages\/msg_.*notice=draft-was-sent/);
  });

  test('that cannot be sent is saved, and the reason is shown', async () => {
    const { browser, make, get } = await arrange();
    const { id } = await make();
    await browser.open(`/drafts/${id}`);
    const refused = await browser.submit(`/drafts/${id}`, { ...FORM, to: '', subject: 'X', intent: 'send' });
    expect(refused.statusCode).toBe(422);
    expect(refused.body).toContain('The message has no recipient');
    expect(await get(id)).toMatchObject({ subject: 'X', to_addresses: [] });
  });

  test('waits for approval if a policy demands it of agents, and leads to the decision', async () => {
    const { browser, make, call, organization } = await arrange();
    await setPolicies(app.worker, organization.organizationId, { require_send_approval: 'all' });
    const { id } = await make();
    await call('POST', `/drafts/${id}/send`);
    const page = await browser.open(`/drafts/${id}`);
    expect(page.body).toContain('waits for approval');
    expect(page.body).toContain(`href="/approvals/${id}"`);
    expect(page.body).not.toContain('value="send"');
  });

  test('that was rejected says why', async () => {
    const { browser, make, call, organization } = await arrange();
    await setPolicies(app.worker, organization.organizationId, { require_send_approval: 'all' });
    const { id, version } = await make();
    await call('POST', `/drafts/${id}/send`);
    const { token } = await createTestSession(app.worker, organization.ownerId);
    const body = { version, note: 'Wrong <price>' };
    expect((await app.call(`/drafts/${id}/reject`, { method: 'POST', token, body })).statusCode).toBe(200);
    const page = await browser.open(`/drafts/${id}`);
    expect(page.body).toContain('An approver rejected it.');
    expect(page.body).toContain('Wrong &lt;price&gt;');
  });

  test('loses its HTML part only if the person says so; the part is framed under a policy of its own', async () => {
    const { browser, make, get } = await arrange();
    const { id } = await make({
      html_body:
        '<p onclick="x()">Hi <script>alert(1)</script><b>you</b> <a href="https://elsewhere.example/?a=1&b=2">here</a><img src="https://track.example/x.png" alt="logo"></p>',
    });
    const page = await browser.open(`/drafts/${id}`);
    expect(page.body).toMatch(
      /<iframe [^>]*\bsandbox="allow-popups allow-popups-to-escape-sandbox" [^>]*src="\/drafts\/[^"]+\/message"/,
    );
    expect(page.body).toContain('https://elsewhere.example/?a=1&amp;b=2');
    expect(page.body).toContain('It has images of other servers');
    const message = await browser.open(`/drafts/${id}/message`);
    expect(message.headers['content-security-policy']).toContain("default-src 'none'");
    expect(message.headers['content-security-policy']).not.toMatch(/script-src|allow-s|https?:/);
    expect(message.body).toContain('<b>you</b>');
    expect(message.body).not.toMatch(/<script|onclick|elsewhere|track/);
    await browser.open(`/drafts/${id}`);
    await browser.submit(`/drafts/${id}`, { ...FORM, subject: 'A' });
    expect((await get(id)).html_body).not.toBeNull();
    await browser.submit(`/drafts/${id}`, { ...FORM, subject: 'A', text_only: 'on' });
    expect((await get(id)).html_body).toBeNull();
  });

  test('gives its files, and no others', async () => {
    const { browser, make } = await arrange();
    const content = Buffer.from('The offer').toString('base64');
    const attachments = [{ filename: 'offer.txt', content_type: 'text/plain', content }];
    const { id } = await make({ attachments });
    const page = await browser.open(`/drafts/${id}`);
    const [, path = ''] = /href="([^"]+)">offer\.txt</.exec(page.body) ?? [];
    const opened = await browser.open(path);
    expect(await (await fetch(String(opened.headers.location))).text()).toBe('The offer');
    const other = await make();
    expect((await browser.open(path.replace(id, other.id))).statusCode).toBe(404);
  });

  test('is deleted as it was seen, and kept if it changed meanwhile', async () => {
    const { browser, make, call } = await arrange();
    const { id } = await make();
    await browser.open(`/drafts/${id}`);
    await call('PATCH', `/drafts/${id}`, { subject: 'Changed' });
    const kept = await browser.submit(`/drafts/${id}/delete`);
    expect(kept.statusCode).toBe(412);
    expect(kept.body).toContain('Changed');
    const gone = await browser.submit(`/drafts/${id}/delete`);
    expect(gone.body).toContain('The draft is deleted.');
    expect((await call('GET', `/drafts/${id}`)).statusCode).toBe(404);
  });

  test('is read only for a viewer, and unknown to another organization', async () => {
    const { browser, make, call } = await arrange('viewer');
    const { id, version } = await make();
    const page = await browser.open(`/drafts/${id}`);
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain('ada@people.example');
    expect(page.body).not.toContain('<form method="post" action="/drafts/');
    const stranger = await arrange();
    for (const path of ['', '/message', '/files/att_x'])
      expect((await stranger.browser.open(`/drafts/${id}${path}`)).statusCode).toBe(404);
    const forged = await stranger.browser.post(`/drafts/${id}/delete`, { version: String(version) });
    expect(forged.statusCode).toBe(403);
    expect((await call('GET', `/drafts/${id}`)).statusCode).toBe(200);
  });
});
