import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { COMMAND_LINE_CLIENT_ID } from '../../domain/connections/command-line-client.ts';
import { purgeConnections } from '../../domain/connections/purge-connections.ts';
import { CONNECTION_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { createAccountQuickly, type QuickAccount } from '../support/accounts.ts';
import { createConnection } from '../support/connections.ts';
import { connectTools } from '../support/mcp-client.ts';
import {
  connect,
  consent,
  createOauthClient,
  openConsent,
  registerClient,
  signedInBrowser,
} from '../support/oauth-client.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { createPageClient, type Fields } from '../support/page-client.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
const LOOPBACK = { redirect_uri: 'http://127.0.0.1:53127/callback' };
const newClient = () => createOauthClient(app, COMMAND_LINE_CLIENT_ID);

/** Signs a person in as `agent-email login` does. */
async function login({
  parameters = {},
  decision = {},
  account,
}: {
  parameters?: Record<string, string>;
  decision?: Fields;
  account?: QuickAccount;
} = {}) {
  const person = account ?? (await createAccountQuickly(app));
  const client = newClient();
  const path = client.authorizePath({ ...LOOPBACK, ...parameters });
  const answered = await consent(await signedInBrowser(app, person.email), path, decision);
  const exchanged = await client.exchange(answered.searchParams.get('code') ?? '', LOOPBACK);
  expect(exchanged.statusCode).toBe(200);
  const tokens = exchanged.json() as { access_token: string; refresh_token: string };
  return { account: person, client, answered, tokens, token: tokens.access_token };
}

/** A connection of the CLI of an owner, without the page of consent. */
async function createCliConnection() {
  const organization = await createOrganization(app.worker);
  const { organizationId } = organization;
  const userId = await createTestUser(app.worker, { organizationId, role: 'owner' });
  const inbox = await createInbox(app.worker, organization);
  const connected = { organizationId, userId, clientId: COMMAND_LINE_CLIENT_ID };
  return { ...organization, userId, inbox, ...(await createConnection(app.worker, connected)) };
}

describe('the sign-in of the CLI', () => {
  test('needs no registration, returns to any port of the computer, and its tokens work at /api/v1 and /mcp', async () => {
    const { answered, token, account } = await login();
    expect(answered.href).toMatch(/^http:\/\/127\.0\.0\.1:53127\/callback\?/);
    const me = await app.call('/me', { token });
    expect(me.json()).toMatchObject({
      kind: 'connection',
      user_id: account.userId,
      org_id: account.organizationId,
      permissions: CONNECTION_PERMISSIONS,
    });
    const created = await app.call('/inboxes', { method: 'POST', token, body: {} });
    expect(created.statusCode).toBe(201);
    const tools = await connectTools(app, token);
    expect(JSON.stringify((await tools.call('list_inboxes')).answer)).toContain(created.json().id);
    await tools.close();
  });

  test('names the CLI on the page of consent; a program that takes its name does not look like it', async () => {
    const account = await createAccountQuickly(app);
    const browser = await signedInBrowser(app, account.email);
    const { page } = await openConsent(browser, newClient().authorizePath(LOOPBACK));
    expect(page.body).toContain('<strong>Agent Email CLI</strong>');
    expect(page.body).toContain('the command line of this service');
    expect(page.body).toContain('http://127.0.0.1:53127</strong>, a program on your computer');
    const impostor = await registerClient(app, { client_name: 'Agent Email CLI' });
    const { page: other } = await openConsent(browser, impostor.authorizePath());
    expect(other.body).toContain('this service cannot tell who operates it');
    expect(other.body).not.toContain('the command line of this service');
  });

  test.each([
    ['to another site', { redirect_uri: 'https://attacker.example/callback' }],
    ['to another computer', { redirect_uri: 'http://192.0.2.1:53127/callback' }],
    ['to another path', { redirect_uri: 'http://127.0.0.1:53127/elsewhere' }],
    ['to a private scheme', { redirect_uri: 'cursor://callback' }],
  ])('never sends a code %s', async (_, parameters) => {
    const answer = await app.app.inject(newClient().authorizePath(parameters));
    expect(answer.statusCode).toBe(400);
    expect(answer.headers.location).toBeUndefined();
  });

  test.each([
    ['without PKCE', { code_challenge: '', code_challenge_method: '' }],
    ['with the plain method of PKCE', { code_challenge_method: 'plain' }],
  ])('is refused %s', async (_, parameters) => {
    const answer = await app.app.inject(newClient().authorizePath({ ...LOOPBACK, ...parameters }));
    expect(new URL(String(answer.headers.location)).searchParams.get('error')).toBe('invalid_request');
  });

  test('cannot be registered by a stranger under its id', async () => {
    const registered = await registerClient(app, { client_id: COMMAND_LINE_CLIENT_ID });
    expect(registered.clientId).not.toBe(COMMAND_LINE_CLIENT_ID);
  });

  test.each(['/api/v1', '/mcp'])('may name the resource %s', async (path) => {
    const resource = `${app.config.PUBLIC_URL}${path}`;
    const { client, tokens, token } = await login({ parameters: { resource } });
    expect((await app.call('/me', { token })).statusCode).toBe(200);
    const refreshed = await client.refresh(tokens.refresh_token, { resource });
    expect((await app.call('/me', { token: refreshed.json().access_token })).statusCode).toBe(200);
  });

  test('names no other resource, and no other program names /api/v1', async () => {
    const errorOf = async (path: string) => {
      const { headers } = await app.app.inject(path);
      return new URL(String(headers.location)).searchParams.get('error');
    };
    const elsewhere = { ...LOOPBACK, resource: 'https://other.example/api/v1' };
    expect(await errorOf(newClient().authorizePath(elsewhere))).toBe('invalid_target');
    const host = await registerClient(app);
    const resource = `${app.config.PUBLIC_URL}/api/v1`;
    expect(await errorOf(host.authorizePath({ resource }))).toBe('invalid_target');
  });

  test('lasts by refresh, and ends when the CLI revokes its token', async () => {
    const { client, tokens, token } = await login();
    const refreshed = (await client.refresh(tokens.refresh_token)).json();
    expect((await app.call('/me', { token: refreshed.access_token })).statusCode).toBe(200);
    const revoked = await client.post('/oauth/revoke', { token: refreshed.refresh_token });
    expect(revoked.statusCode).toBe(200);
    for (const dead of [token, refreshed.access_token])
      expectProblem(await app.call('/me', { token: dead }), 'unauthenticated');
  });

  test('survives the sweep that ends connections of programs that are gone', async () => {
    const { token, account } = await login();
    await query(
      app.worker,
      sql`update connections set created_at = now() - interval '2 hours' where user_id = ${account.userId}`,
    );
    await purgeConnections(app.worker);
    expect((await app.call('/me', { token })).statusCode).toBe(200);
  });
});

describe('at /api/v1', () => {
  test('a token of another program is refused, whatever that program calls itself', async () => {
    const { tokens } = await connect(app);
    for (const path of ['/me', '/inboxes', '/events', '/events/stream', '/nothing'])
      expect((await app.call(path, { token: tokens.access_token })).statusCode).toBe(
        path === '/nothing' ? 404 : 401,
      );
  });

  test('a refresh token and a code of the CLI are refused, and its token in the cookie of a person', async () => {
    const { tokens, answered, token } = await login();
    for (const other of [tokens.refresh_token, answered.searchParams.get('code') ?? '', `${token}x`])
      expectProblem(await app.call('/me', { token: other }), 'unauthenticated');
    const browser = createPageClient(app);
    browser.cookies.set('session', token);
    await browser.open('/account');
    expect(browser.path).toMatch(/^\/login/);
  });

  test('the CLI makes no keys, webhooks, invitations or weaker policies, approves nothing and is no person', async () => {
    const { token, inbox, organizationId, token: _, ...organization } = await createCliConnection();
    await setPolicies(app.worker, organizationId, { require_send_approval: 'all' });
    const waiting = await app.call(`/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      token,
      body: { to: ['ada@people.example'], subject: 'Offer', text_body: 'x' },
    });
    expect(waiting.statusCode).toBe(202);
    const { id, version } = waiting.json();
    const attempts: [string, 'POST' | 'PATCH' | 'GET', object?][] = [
      [`/drafts/${id}/approve`, 'POST', { version }],
      ['/api-keys', 'POST', { name: 'x', permissions: ['messages:read'] }],
      ['/webhooks/endpoints', 'POST', { url: 'https://attacker.example/hook', events: ['message.received'] }],
      ['/org/invitations', 'POST', { email: 'a@attacker.example', role: 'owner' }],
      ['/org/policies', 'PATCH', { require_send_approval: 'off' }],
      ['/connections', 'GET'],
    ];
    for (const [path, method, body] of attempts)
      expectProblem(await app.call(path, { method, token, body }), 'permission_denied');
    for (const path of ['/user/me', '/user/me/sessions', '/auth/mfa/status', '/admin/orgs'])
      expectProblem(await app.call(path, { token }), 'unauthenticated');
    const person = await createTestSession(app.worker, organization.ownerId);
    const approved = { method: 'POST' as const, token: person.token, body: { version } };
    expect((await app.call(`/drafts/${id}/approve`, approved)).statusCode).toBe(201);
  });

  test('the daily cap of an inbox holds for it, and its mail is marked as automatic', async () => {
    const { token, inbox, organizationId } = await createCliConnection();
    await setPolicies(app.worker, organizationId, { daily_send_cap_per_inbox: 1 });
    const body = { to: ['ada@people.example'], subject: 'Offer', text_body: 'x' };
    const send = () => app.call(`/inboxes/${inbox.id}/messages`, { method: 'POST', token, body });
    const { id } = (await send()).json();
    const [message] = await query<{ auto: string }>(
      app.worker,
      sql`select auto_submitted as auto from messages where id = ${id}`,
    );
    expect(message?.auto).toBe('auto-generated');
    expect((await send()).statusCode).toBeGreaterThanOrEqual(400);
  });

  test('it has the permissions that the person has today, under the policies of today', async () => {
    const { token, organizationId, userId } = await createCliConnection();
    const create = () => app.call('/inboxes', { method: 'POST', token, body: {} });
    expect((await create()).statusCode).toBe(201);
    await query(app.worker, sql`update members set role = 'viewer' where user_id = ${userId}`);
    expectProblem(await create(), 'permission_denied');
    await setPolicies(app.worker, organizationId, { allowed_cidrs: ['192.0.2.0/24'] });
    expect((await app.call('/me', { token })).statusCode).toBe(403);
    await setPolicies(app.worker, organizationId, { allowed_cidrs: [], require_mfa: true });
    await query(app.worker, sql`update connections set factors = '{}' where user_id = ${userId}`);
    expectProblem(await app.call('/me', { token }), 'policy_violation');
  });

  test('the person chooses one inbox, which is all that it reaches', async () => {
    const account = await createAccountQuickly(app);
    const create = async () =>
      (await app.call('/inboxes', { method: 'POST', token: account.token, body: {} })).json();
    const [own, other] = [await create(), await create()];
    const { token } = await login({ account, decision: { inbox: own.email } });
    const { data } = (await app.call('/inboxes', { token })).json();
    expect(data.map(({ id }: { id: string }) => id)).toEqual([own.id]);
    expectProblem(await app.call(`/inboxes/${other.id}`, { token }), 'not_found');
  });

  test('the person ends it like any other connection', async () => {
    const { token, account } = await login();
    const { data } = (await app.call('/connections', { token: account.token })).json();
    expect(data).toEqual([
      expect.objectContaining({
        client_id: COMMAND_LINE_CLIENT_ID,
        client_name: 'Agent Email CLI',
        redirect_to: 'http://127.0.0.1:53127',
      }),
    ]);
    await app.call(`/connections/${data[0].id}`, { method: 'DELETE', token: account.token });
    expectProblem(await app.call('/me', { token }), 'unauthenticated');
  });
});
