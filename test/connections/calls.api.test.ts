import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createAccountQuickly, type QuickAccount } from '../support/accounts.ts';
import { eventually } from '../support/eventually.ts';
import { connectTools } from '../support/mcp-client.ts';
import { connect } from '../support/oauth-client.ts';
import { createPageClient } from '../support/page-client.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestUser } from '../support/sessions.ts';
import { arrangeSuspensions } from '../support/suspensions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

const ping = (token: string) =>
  app.app.inject({
    method: 'POST',
    url: '/mcp',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    payload: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  });

/** An owner beside the one who connects, so that the first one may be demoted or leave. */
async function connectColleague(decision = {}) {
  const account = await createAccountQuickly(app);
  await createTestUser(app.worker, { organizationId: account.organizationId });
  return connect(app, decision, account);
}

const setRole = ({ userId }: QuickAccount, role: string) =>
  query(app.worker, sql`update members set role = ${role} where user_id = ${userId}`);

describe('a call of a connection', () => {
  test('knows the connection and its person, and has what the person granted', async () => {
    const { tokens, connectionId, account } = await connect(app, {
      permissions: ['inboxes:read', 'messages:read'],
    });
    const tools = await connectTools(app, tokens.access_token);
    const { answer } = await tools.call('whoami');
    expect(answer).toMatchObject({
      kind: 'connection',
      id: connectionId,
      user_id: account.userId,
      permissions: ['inboxes:read', 'messages:read'],
    });
    const names = await tools.names();
    expect(names).toContain('list_inboxes');
    expect(names).not.toContain('create_inbox');
    await tools.close();
    const [listed] = (await app.call('/connections', { token: account.token })).json().data;
    await eventually(async () => {
      const [again] = (await app.call('/connections', { token: account.token })).json().data;
      expect(again.last_used_at).not.toBeNull();
    });
    expect(listed.id).toBe(connectionId);
  });

  test('above its permissions is refused, also by a name that the list does not have', async () => {
    const { tokens, account } = await connect(app, { permissions: ['inboxes:read'] });
    const tools = await connectTools(app, tokens.access_token);
    const refused = await tools.call('create_inbox', {}).catch((error: Error) => error);
    expect(refused instanceof Error || refused.isError).toBe(true);
    await tools.close();
    const rows = await query(app.worker, sql`select 1 from inboxes where org_id = ${account.organizationId}`);
    expect(rows).toEqual([]);
  });

  test('has the permissions that the person has today', async () => {
    const { tokens, account } = await connectColleague();
    const before = await connectTools(app, tokens.access_token);
    expect(await before.names()).toContain('create_inbox');
    await before.close();
    await setRole(account, 'viewer');
    const after = await connectTools(app, tokens.access_token);
    expect(await after.names()).not.toContain('create_inbox');
    expect((await after.call('whoami')).answer.permissions).not.toContain('messages:send');
    await after.close();
  });

  test('never has keys:manage, webhooks:manage or what only people may do', async () => {
    const { tokens, connectionId } = await connect(app);
    await query(
      app.worker,
      sql`update connections set permissions = permissions || '{keys:manage,webhooks:manage,messages:approve,org:delete,members:manage}'
        where id = ${connectionId}`,
    );
    const tools = await connectTools(app, tokens.access_token);
    const { permissions } = (await tools.call('whoami')).answer;
    for (const name of ['keys:manage', 'webhooks:manage', 'messages:approve', 'org:delete', 'members:manage'])
      expect(permissions).not.toContain(name);
    await tools.close();
  });

  test('bound to an inbox reaches no other one', async () => {
    const account = await createAccountQuickly(app);
    const create = async () =>
      (await app.call('/inboxes', { method: 'POST', token: account.token, body: {} })).json();
    const [own, other] = [await create(), await create()];
    const { tokens } = await connect(app, { inbox: own.email }, account);
    const tools = await connectTools(app, tokens.access_token);
    const { answer } = await tools.call('list_inboxes');
    expect(JSON.stringify(answer)).toContain(own.id);
    expect(JSON.stringify(answer)).not.toContain(other.id);
    await tools.close();
  });

  test('is in the list of calls under the connection', async () => {
    const { tokens, connectionId, account } = await connect(app);
    const tools = await connectTools(app, tokens.access_token);
    await tools.call('list_inboxes');
    await tools.close();
    await eventually(async () => {
      const { data } = (
        await app.call(`/requests?credential_id=${connectionId}`, { token: account.token })
      ).json();
      expect(data).toEqual(
        expect.arrayContaining([
          expect.objectContaining({
            credential: { kind: 'connection', id: connectionId, name: expect.any(String) },
          }),
        ]),
      );
    });
  });
});

describe('where tokens work', () => {
  test('a token of a connection works at no other address', async () => {
    const { tokens } = await connect(app);
    expect((await ping(tokens.access_token)).statusCode).toBe(200);
    for (const path of ['/me', '/inboxes', '/connections', '/api-keys', '/user/me', '/admin/orgs'])
      expectProblem(await app.call(path, { token: tokens.access_token }), 'unauthenticated');
    const browser = createPageClient(app);
    browser.cookies.set('session', tokens.access_token);
    await browser.open('/account');
    expect(browser.path).toMatch(/^\/login/);
  });

  test('a refresh token, a code, a session and its cookie do not work at /mcp', async () => {
    const { tokens, code, account } = await connect(app);
    for (const token of [tokens.refresh_token, code, account.token, `${tokens.access_token}x`])
      expect((await ping(token)).statusCode).toBe(401);
    const cookie = await app.app.inject({
      method: 'POST',
      url: '/mcp',
      headers: { cookie: `session=${account.token}`, 'content-type': 'application/json' },
      payload: '{}',
    });
    expect(cookie.statusCode).toBe(401);
    const inQuery = await app.app.inject({
      method: 'POST',
      url: `/mcp?access_token=${tokens.access_token}`,
      payload: '{}',
    });
    expect([400, 401]).toContain(inQuery.statusCode);
  });
});

describe('a connection stops working', () => {
  test.each([
    [
      'when its access token has expired',
      (id: string) =>
        sql`update connection_tokens set expires_at = now() - interval '1 second' where connection_id = ${id}`,
    ],
    [
      'when it has expired',
      (id: string) => sql`update connections set expires_at = now() - interval '1 second' where id = ${id}`,
    ],
    ['when it was ended', (id: string) => sql`update connections set ended_at = now() where id = ${id}`],
  ])('%s', async (_, change) => {
    const { tokens, connectionId } = await connect(app);
    expect((await ping(tokens.access_token)).statusCode).toBe(200);
    await query(app.worker, change(connectionId));
    expect((await ping(tokens.access_token)).statusCode).toBe(401);
  });

  test.each([
    ['is removed', (id: string) => sql`delete from members where user_id = ${id}`],
    ['is suspended', (id: string) => sql`update users set status = 'suspended' where id = ${id}`],
    ['deletes the account', (id: string) => sql`update users set deleted_at = now() where id = ${id}`],
  ])('when its person %s', async (_, change) => {
    const { tokens, account } = await connect(app);
    expect((await ping(tokens.access_token)).statusCode).toBe(200);
    await query(app.worker, change(account.userId));
    expect((await ping(tokens.access_token)).statusCode).toBe(401);
  });

  test('when its organization is closed', async () => {
    const { tokens, account } = await connect(app);
    await query(
      app.worker,
      sql`update organizations set deleted_at = now() where id = ${account.organizationId}`,
    );
    expect((await ping(tokens.access_token)).statusCode).toBeGreaterThanOrEqual(400);
  });

  test('for changes when its organization is suspended; it reads on', async () => {
    const { tokens, account } = await connect(app);
    const { suspend } = arrangeSuspensions(app.worker);
    const { organizationId } = account;
    await suspend({ type: 'organization', id: organizationId, organizationId });
    const tools = await connectTools(app, tokens.access_token);
    expect((await tools.call('list_inboxes')).isError).toBe(false);
    const refused = await tools.call('create_inbox', {});
    expect(refused).toMatchObject({ isError: true, answer: { code: 'organization_suspended' } });
    await tools.close();
  });
});

describe('policies of the organization bind each call', () => {
  const refusedBy = async (token: string) => {
    const answer = await ping(token);
    expect(answer.statusCode).toBe(403);
    return answer.json();
  };

  test('a second factor, as the person proved it when they consented', async () => {
    const { tokens, account, connectionId } = await connect(app);
    await setPolicies(app.worker, account.organizationId, { require_mfa: true });
    expect(await refusedBy(tokens.access_token)).toMatchObject({
      code: 'policy_violation',
      policy: 'require_mfa',
    });
    await query(app.worker, sql`update connections set factors = '{totp}' where id = ${connectionId}`);
    expect((await ping(tokens.access_token)).statusCode).toBe(200);
  });

  test('single sign-on, without the exception for owners', async () => {
    const { tokens, account, connectionId } = await connect(app);
    await query(app.worker, sql`update connections set factors = '{totp}' where id = ${connectionId}`);
    await setPolicies(app.worker, account.organizationId, { enforce_sso: true });
    expect(await refusedBy(tokens.access_token)).toMatchObject({
      code: 'policy_violation',
      policy: 'enforce_sso',
    });
  });

  test('address ranges', async () => {
    const { tokens, account } = await connect(app);
    await setPolicies(app.worker, account.organizationId, { allowed_cidrs: ['192.0.2.0/24'] });
    expect((await ping(tokens.access_token)).statusCode).toBe(403);
    await setPolicies(app.worker, account.organizationId, { allowed_cidrs: ['127.0.0.0/8'] });
    expect((await ping(tokens.access_token)).statusCode).toBe(200);
  });

  test('the age of sessions does not matter: a connection has its own expiry', async () => {
    const { tokens, account, connectionId } = await connect(app);
    await setPolicies(app.worker, account.organizationId, { session_max_age_hours: 1 });
    await query(
      app.worker,
      sql`update connections set authenticated_at = now() - interval '2 hours' where id = ${connectionId}`,
    );
    expect((await ping(tokens.access_token)).statusCode).toBe(200);
  });
});
