import { beforeEach, describe, expect, test } from '@jest/globals';
import { PERMISSIONS } from '../../domain/identity/permissions.ts';
import { PERMISSION_GROUPS } from '../../web/keys/permission-words.ts';
import { createAccountQuickly, type QuickAccount } from '../support/accounts.ts';
import { createConnection } from '../support/connections.ts';
import { impersonate } from '../support/impersonation.ts';
import { createKey } from '../support/organizations.ts';
import { createPageClient, type PageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp();
const DAY_MS = 86_400_000;
let person: QuickAccount;
let browser: PageClient;

function browserOf(token: string): PageClient {
  const client = createPageClient(app);
  client.cookies.set('session', token);
  return client;
}
const tokenOf = (html: string) => /<code class="secret"[^>]*>([^<]+)</.exec(html)?.[1] ?? '';
const statusOf = async (token: string, path = '/inboxes') => (await app.call(path, { token })).statusCode;
const readKey = async (id: string) => (await app.call(`/api-keys/${id}`, { token: person.token })).json();
const NEW = '/keys/new?preset=agent';

/** Creates a key on the page, and returns it with its token. */
async function createOnPage(fields: Record<string, string | string[]> = {}) {
  await browser.open('/keys/new');
  const page = await browser.submit(NEW, {
    name: 'Robot',
    reach: 'organization',
    permissions: ['inboxes:read', 'keys:manage'],
    ...fields,
  });
  const token = tokenOf(page.body);
  const [, id = ''] = /href="\/keys\/(key_\w+)"/.exec(page.body) ?? [];
  return { page, token, id };
}

beforeEach(async () => {
  person = await createAccountQuickly(app);
  browser = browserOf(person.token);
});

test('every permission has words', () => {
  const described = PERMISSION_GROUPS.flatMap(({ permissions }) => permissions.map(([name]) => name));
  expect(described.sort()).toEqual([...PERMISSIONS].sort());
});

describe('the form of a new key', () => {
  test('offers what the person may give, checked as the chosen set says', async () => {
    const page = (await browser.open('/keys/new')).body;
    expect(page).toContain('Send messages, reply and forward');
    expect(page).toMatch(/value="messages:send" checked/);
    expect(page).not.toMatch(/value="billing:manage" checked/);
    expect(page).not.toContain('value="messages:approve"');
    expect((await browser.open('/keys/new?preset=all')).body).toMatch(/value="billing:manage" checked/);
    expect((await browser.open('/keys/new?preset=none')).body).not.toContain(' checked');
    const { organizationId } = person;
    const developer = await createTestUser(app.worker, { organizationId, role: 'developer' });
    const session = await createTestSession(app.worker, developer);
    const theirs = (await browserOf(session.token).open('/keys/new?preset=all')).body;
    expect(theirs).toContain('value="messages:send"');
    expect(theirs).not.toContain('value="billing:manage"');
  });

  test('creates a key that is shown once, with a first call', async () => {
    const { page, token, id } = await createOnPage({
      expires_at: '2190-01-31',
      allowed_cidrs: '127.0.0.1\n::1',
    });
    expect(page.headers['cache-control']).toBe('no-store');
    expect(page.body).toContain('/api/v1/me');
    expect(await statusOf(token)).toBe(200);
    expect(await readKey(id)).toMatchObject({
      name: 'Robot',
      permissions: ['inboxes:read', 'keys:manage'],
      env_id: null,
      expires_at: '2190-01-31T23:59:59.999Z',
      allowed_cidrs: ['127.0.0.1', '::1'],
      created_by_user_id: person.userId,
    });
    expect((await browser.open(`/keys/${id}`)).body).not.toContain(token);
  });

  test('creates a key without a permission', async () => {
    const { id } = await createOnPage({ permissions: [] });
    expect(await readKey(id)).toMatchObject({ permissions: [] });
  });

  test('binds a key to an environment, or to an inbox by its address', async () => {
    const { organizationId, token } = person;
    const inbox = (await app.call('/inboxes', { method: 'POST', token, body: {} })).json();
    const bound = await createOnPage({ reach: 'inbox', inbox: ` ${inbox.email} ` });
    expect(await readKey(bound.id)).toMatchObject({ env_id: inbox.env_id, inbox_id: inbox.id });
    expect((await browser.open(`/keys/${bound.id}`)).body).toContain(inbox.email);
    const toEnvironment = await createOnPage({ reach: inbox.env_id });
    expect(await readKey(toEnvironment.id)).toMatchObject({ env_id: inbox.env_id, inbox_id: null });
    const foreign = await createAccountQuickly(app);
    const other = await app.call('/inboxes', { method: 'POST', token: foreign.token, body: {} });
    for (const address of ['', 'nobody@example.com', other.json().email]) {
      const { page } = await createOnPage({ reach: 'inbox', inbox: address });
      expect(page.statusCode).toBe(400);
      expect(page.body).toContain('id="field-inbox-error"');
    }
    const { page } = await createOnPage({ reach: other.json().env_id });
    expect(page.statusCode).toBe(404);
    expect((await createKey(app.worker, { organizationId })).keyId).toBeTruthy();
  });

  test.each([
    [{ name: '' }, 'name'],
    [{ expires_at: '2020-01-01' }, 'expires_at'],
    [{ expires_at: '2190-13-45' }, 'expires_at'],
    [{ allowed_cidrs: 'everywhere' }, 'allowed_cidrs'],
  ])('keeps what was entered with the error of %j', async (wrong, field) => {
    const { page } = await createOnPage({ name: 'Kept name', ...wrong });
    expect(page.statusCode).toBe(400);
    expect(page.body).toContain(`id="field-${field}-error"`);
    if (field !== 'name') expect(page.body).toContain('value="Kept name"');
    expect(page.body).toMatch(/value="keys:manage" checked/);
    expect(page.body).not.toMatch(/value="messages:send" checked/);
    expect((await app.call('/api-keys?limit=100', { token: person.token })).body).not.toContain('Kept name');
  });

  test('gives nothing that the person lacks', async () => {
    const { organizationId } = person;
    const developer = await createTestUser(app.worker, { organizationId, role: 'developer' });
    const theirs = browserOf((await createTestSession(app.worker, developer)).token);
    await theirs.open('/keys/new');
    const page = await theirs.submit(NEW, {
      name: 'x',
      reach: 'organization',
      permissions: 'billing:manage',
    });
    expect(page.statusCode).toBe(403);
    expect(tokenOf(page.body)).toBe('');
  });
});

describe('the list of keys', () => {
  test('says when a key was used last, and finds those that were not for a month', async () => {
    const old = await createKey(app.worker, { organizationId: person.organizationId });
    await createOnPage({ name: 'Fresh key' });
    await app.worker.db
      .updateTable('api_keys')
      .set({ name: 'Forgotten key', created_at: new Date(Date.now() - 40 * DAY_MS) })
      .where('id', '=', old.keyId)
      .execute();
    const all = (await browser.open('/keys')).body;
    expect(all).toContain('Forgotten key');
    expect(all).toContain('Fresh key');
    expect(all.match(/unused for a month<\/span>/g)).toHaveLength(1);
    const unused = (await browser.open('/keys?use=unused')).body;
    expect(unused).toContain('Forgotten key');
    expect(unused).not.toContain('Fresh key');
    expect((await browser.open('/keys?by=me')).body).not.toContain('Forgotten key');
    expect((await browser.open('/keys?use=&by=')).body).toContain('Forgotten key');
    expect((await browser.open('/keys?use=unused&by=me')).body).toContain('No key fits');
  });

  test('has pages', async () => {
    for (let count = 0; count < 51; count += 1)
      await createKey(app.worker, { organizationId: person.organizationId });
    const first = (await browser.open('/keys')).body;
    const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first) ?? [];
    const second = await browser.open(next.replaceAll('&amp;', '&'));
    expect(second.statusCode).toBe(200);
    expect(second.body).not.toContain('rel="next"');
  });

  test('is the list of programs for a person who manages no keys', async () => {
    const viewer = await createTestUser(app.worker, {
      organizationId: person.organizationId,
      role: 'viewer',
    });
    const theirs = browserOf((await createTestSession(app.worker, viewer)).token);
    const page = await theirs.open('/keys');
    expect(theirs.path).toBe('/keys/connections');
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain('No program is connected');
    expect(page.body).not.toContain('>API keys</a>');
    expect((await theirs.open('/keys/new')).statusCode).toBe(403);
  });

  test('shows names of strangers as text', async () => {
    const { page, id } = await createOnPage({ name: '<img src=x onerror=alert(1)>' });
    for (const html of [
      page.body,
      (await browser.open('/keys')).body,
      (await browser.open(`/keys/${id}`)).body,
    ]) {
      expect(html).toContain('&lt;img src=x onerror=alert(1)&gt;');
      expect(html).not.toContain('<img');
    }
  });
});

describe('a key', () => {
  test('says what it may do, who made it, and from where it was used last', async () => {
    const { id, token } = await createOnPage();
    const child = (
      await app.call('/api-keys', { method: 'POST', token, body: { name: 'Child key' } })
    ).json();
    await app.worker.db
      .updateTable('api_keys')
      .set({ last_used_at: new Date(), last_used_from: '192.0.2.7' })
      .where('id', '=', id)
      .execute();
    const page = (await browser.open(`/keys/${id}`)).body;
    for (const text of [
      'Create, change and revoke API keys',
      'See inboxes',
      '>you<',
      '192.0.2.7',
      'Child key',
    ])
      expect(page).toContain(text);
    expect(page).toContain(`/requests?credential=${id}`);
    expect((await browser.open(`/keys/${child.id}`)).body).toContain(`href="/keys/${id}"`);
  });

  test('is changed: name, permissions, end and addresses; what is not entered stays', async () => {
    const { id } = await createOnPage({ expires_at: '2190-01-31' });
    await browser.open(`/keys/${id}`);
    await browser.submit(`/keys/${id}`, {
      name: 'Other name',
      permissions: 'inboxes:read',
      expires_at: '2190-01-31',
      allowed_cidrs: '203.0.113.0/24, 2001:db8::/32',
    });
    expect(browser.path).toBe(`/keys/${id}?notice=key-changed`);
    expect(await readKey(id)).toMatchObject({
      name: 'Other name',
      permissions: ['inboxes:read'],
      expires_at: '2190-01-31T23:59:59.999Z',
      allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'],
    });
    await browser.submit(`/keys/${id}`, { name: 'Other name', expires_at: '', allowed_cidrs: '' });
    expect(await readKey(id)).toMatchObject({ permissions: [], expires_at: null, allowed_cidrs: [] });
    const refused = await browser.submit(`/keys/${id}`, { name: 'x', allowed_cidrs: '300.1.1.1' });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('300.1.1.1</textarea>');
    expect(await readKey(id)).toMatchObject({ name: 'Other name' });
  });

  test('is rotated, with the old token for as long as the person says', async () => {
    const { id, token } = await createOnPage();
    await browser.open(`/keys/${id}`);
    const rotated = await browser.submit(`/keys/${id}/rotate`, { overlap: '3600' });
    expect(rotated.body).toContain('works for another hour');
    const next = tokenOf(rotated.body);
    expect([await statusOf(token), await statusOf(next)]).toEqual([200, 200]);
    expect((await browser.open(`/keys/${id}`)).body).toContain('Old token');
    await browser.open(`/keys/${id}`);
    const again = tokenOf((await browser.submit(`/keys/${id}/rotate`, { overlap: '0' })).body);
    expect([await statusOf(next), await statusOf(again)]).toEqual([401, 200]);
    await browser.open(`/keys/${id}`);
    expect((await browser.submit(`/keys/${id}/rotate`, { overlap: '99999999' })).statusCode).toBe(400);
  });

  test('is revoked after a confirmation, with or without the keys that it created', async () => {
    const { id, token } = await createOnPage();
    const child = (
      await app.call('/api-keys', { method: 'POST', token, body: { name: 'Child key' } })
    ).json();
    const page = await browser.open(`/keys/${id}`);
    expect(page.body).toMatch(/<div id="revoke" popover/);
    expect(page.body).toContain('Revoke the keys that it created, too');
    await browser.submit(`/keys/${id}/revoke`);
    expect(browser.path).toBe('/keys?notice=key-revoked');
    expect([await statusOf(token), await statusOf(child.token)]).toEqual([401, 200]);
    expect((await browser.open(`/keys/${id}`)).statusCode).toBe(404);
    expect((await browser.open(`/keys/${child.id}`)).body).toContain('with a key that is revoked');
    const other = await createOnPage();
    const its = await app.call('/api-keys', { method: 'POST', token: other.token, body: { name: 'x' } });
    await browser.open(`/keys/${other.id}`);
    await browser.submit(`/keys/${other.id}/revoke`, { children: 'on' });
    expect(await statusOf(its.json().token)).toBe(401);
  });

  test('of another organization, or of another member for a developer, is not found', async () => {
    const { id } = await createOnPage();
    const { organizationId } = person;
    const developer = await createTestUser(app.worker, { organizationId, role: 'developer' });
    const stranger = await createAccountQuickly(app);
    for (const token of [stranger.token, (await createTestSession(app.worker, developer)).token]) {
      const theirs = browserOf(token);
      expect((await theirs.open(`/keys/${id}`)).statusCode).toBe(404);
      expect((await theirs.open('/keys')).body).not.toContain(id);
    }
    expect(await readKey(id)).toMatchObject({ name: 'Robot' });
  });

  test('that has expired cannot be changed or rotated, and says so', async () => {
    const { id } = await createOnPage();
    await app.worker.db
      .updateTable('api_keys')
      .set({ expires_at: new Date(Date.now() - 1_000) })
      .where('id', '=', id)
      .execute();
    const page = (await browser.open(`/keys/${id}`)).body;
    expect(page).toContain('>expired<');
    expect(page).not.toContain('id="rotate"');
    expect(page).not.toContain('Save the changes');
  });

  test('is changed by no form from another site', async () => {
    const { id } = await createOnPage();
    for (const path of [
      '/keys/new',
      `/keys/${id}`,
      `/keys/${id}/rotate`,
      `/keys/${id}/revoke`,
      '/keys/connections/end',
    ])
      expect([path, (await browser.post(path, { name: 'x', overlap: '0' })).statusCode]).toEqual([path, 403]);
    expect(await readKey(id)).toMatchObject({ name: 'Robot', previous_token: null });
  });

  test('is only read by staff in a support session', async () => {
    const { id } = await createOnPage();
    const support = await impersonate(app, person.organizationId);
    const theirs = createPageClient(app);
    theirs.cookies.set('session', support.staff.token);
    theirs.cookies.set('impersonation', support.token);
    const page = await theirs.open(`/keys/${id}`);
    expect(page.body).not.toContain('Save the changes');
    expect(page.body).not.toContain('id="revoke"');
  });
});

describe('connected programs', () => {
  test('are listed with what they may do, and ended after a confirmation', async () => {
    const { connectionId } = await createConnection(app.worker, person);
    const page = (await browser.open('/keys/connections')).body;
    expect(page).toContain('Test host');
    expect(page).toContain('https://host.example');
    expect(page).toContain('Read messages and their files');
    expect(page).toContain('The whole organization');
    const ended = await browser.submit('/keys/connections/end', { connection_id: connectionId });
    expect(ended.body).toContain('The connection is ended.');
    expect(ended.body).toContain('No program is connected');
    expect((await app.call('/connections', { token: person.token })).json().data).toEqual([]);
  });
});
