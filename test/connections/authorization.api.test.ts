import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { CONNECTION_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { PERMISSION_TEXTS } from '../../web/connect/connect.routes.ts';
import { createAccountQuickly, newNetwork } from '../support/accounts.ts';
import { impersonate } from '../support/impersonation.ts';
import {
  connect,
  consent,
  openConsent,
  REDIRECT_URI,
  registerClient,
  signedInBrowser,
} from '../support/oauth-client.ts';
import { createPageClient } from '../support/page-client.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

const tokenRows = (connectionId: string) =>
  app.worker.db
    .selectFrom('connection_tokens')
    .select(['token_hash as hash', 'kind', 'payload'])
    .where('connection_id', '=', connectionId)
    .execute();

describe('consent', () => {
  test('a person connects a client, which gets tokens for what the person chose', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const answered = await consent(browser, client.authorizePath(), {
      permissions: ['inboxes:read', 'messages:read'],
    });
    expect(answered.href.startsWith(`${REDIRECT_URI}?`)).toBe(true);
    expect(Object.fromEntries(answered.searchParams)).toEqual({
      code: expect.any(String),
      state: 'state-of-the-client',
      iss: app.config.PUBLIC_URL,
    });
    const exchanged = await client.exchange(answered.searchParams.get('code') ?? '');
    expect(exchanged.json()).toEqual({
      token_type: 'Bearer',
      access_token: expect.stringMatching(/^cat_/),
      refresh_token: expect.stringMatching(/^crt_/),
      expires_in: 3_600,
      scope: 'inboxes:read messages:read',
    });
    expect(exchanged.headers['cache-control']).toBe('no-store');

    const { data } = (await app.call('/connections', { token: account.token })).json();
    expect(data).toEqual([
      expect.objectContaining({
        user_id: account.userId,
        client_id: client.clientId,
        client_name: 'Test host',
        redirect_to: 'https://host.example',
        permissions: ['inboxes:read', 'messages:read'],
        env_id: null,
        inbox_id: null,
      }),
    ]);
    const audit = await app.call(`/org/audit-log?resource_id=${data[0].id}`, { token: account.token });
    expect(audit.json().data).toEqual([
      expect.objectContaining({
        action: 'connection.created',
        actor: expect.objectContaining({ kind: 'user' }),
      }),
    ]);
  });

  test('the database has neither the values of codes and tokens nor ids of requests', async () => {
    const { connectionId, tokens, code } = await connect(app);
    const rows = await tokenRows(connectionId);
    expect(rows.map(({ kind }) => kind).sort()).toEqual([
      'access_token',
      'authorization_code',
      'refresh_token',
    ]);
    const values = [tokens.access_token, tokens.refresh_token, code];
    const hashes = values.map((value) => createHash('sha256').update(value).digest('hex'));
    expect(rows.map(({ hash }) => Buffer.from(hash).toString('hex')).sort()).toEqual(hashes.sort());
    for (const { payload } of rows) {
      expect(payload).not.toHaveProperty('jti');
      for (const value of values) expect(JSON.stringify(payload)).not.toContain(value);
    }
  });

  test('the page names the client as unverified, and where the person returns to', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app, {
      client_name: '<b>Bank</b>\u202e',
      redirect_uris: [REDIRECT_URI],
    });
    const { page } = await openConsent(await signedInBrowser(app, account.email), client.authorizePath());
    expect(page.body).toContain('&lt;b&gt;Bank&lt;/b&gt;</strong>');
    expect(page.body).toContain('this service cannot tell who operates it');
    expect(page.body).toContain('<strong>https://host.example</strong>');
  });

  test('each permission that it can offer has a text', () => {
    expect(CONNECTION_PERMISSIONS.filter((name) => PERMISSION_TEXTS[name] === undefined)).toEqual([]);
  });

  test('it asks to sign in first, also somebody who signed in more than ten minutes ago, and each time', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const stranger = createPageClient(app);
    await stranger.open(client.authorizePath());
    expect(stranger.path).toMatch(/^\/login\?next=%2Fconnect%2F/);

    const browser = await signedInBrowser(app, account.email);
    await consent(browser, client.authorizePath());
    const again = await browser.open(client.authorizePath());
    expect(again.body).toContain('Test host');
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '11 minutes' where user_id = ${account.userId}`,
    );
    await browser.open(client.authorizePath());
    expect(browser.path).toMatch(/^\/login\?.*notice=sign-in-again/);
  });

  test('a person who cancels sends the client away without a code', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const answered = await consent(browser, client.authorizePath(), { decision: 'deny' });
    expect(answered.searchParams.get('error')).toBe('access_denied');
    expect(answered.searchParams.has('code')).toBe(false);
    expect((await app.call('/connections', { token: account.token })).json().data).toEqual([]);
  });

  test('prompt=none is refused at the client, because consent is never skipped', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    await browser.open(client.authorizePath({ prompt: 'none' }));
    expect(new URL(browser.path).searchParams.get('error')).toBe('consent_required');
  });

  test('staff in the place of a member cannot connect anything', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const { page, action } = await openConsent(browser, client.authorizePath());
    expect(page.statusCode).toBe(200);
    const { token, staff } = await impersonate(app, account.organizationId, { write: true });
    browser.cookies.set('session', staff.token);
    browser.cookies.set('impersonation', token);
    const refused = await browser.open(action);
    expect(refused.statusCode).toBe(403);
    expect(refused.body).not.toContain('name="decision"');
    const posted = await browser.post(action, { decision: 'allow', permissions: 'messages:read', csrf: '' });
    expect(posted.statusCode).toBe(403);
  });

  test('a session that may only enroll a second factor cannot connect anything', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = createPageClient(app);
    browser.cookies.set(
      'session',
      (await createTestSession(app.worker, account.userId, { kind: 'enroll' })).token,
    );
    const refused = await browser.open(client.authorizePath());
    expect(refused.statusCode).toBe(403);
    expect(refused.body).not.toContain('name="decision"');
  });

  test('another browser can neither see nor answer the request', async () => {
    const victim = await createAccountQuickly(app);
    const attacker = await createAccountQuickly(app);
    const client = await registerClient(app);
    const { action } = await openConsent(await signedInBrowser(app, attacker.email), client.authorizePath());
    const browser = await signedInBrowser(app, victim.email);
    const seen = await browser.open(action.split('?')[0] ?? '');
    expect(seen.statusCode).toBe(404);
    expect(seen.body).not.toContain('name="decision"');
  });

  test('a form of another site is refused', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const { action } = await openConsent(browser, client.authorizePath());
    const posted = await browser.post(action, { decision: 'allow', permissions: 'messages:read', csrf: 'x' });
    expect(posted.statusCode).toBe(403);
  });

  test('the page offers what the role has, and takes no more than it offers', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const path = client.authorizePath({ scope: 'messages:read messages:send keys:manage openid' });
    expect((await openConsent(browser, path)).names).toEqual(['messages:read', 'messages:send']);
    for (const permissions of [
      ['inboxes:write'],
      ['keys:manage'],
      ['messages:read', 'webhooks:manage'],
      [],
    ]) {
      const { action } = await openConsent(browser, path);
      const refused = await browser.submit(action, { decision: 'allow', permissions });
      expect(refused.statusCode).toBe(400);
    }
    expect((await app.call('/connections', { token: account.token })).json().data).toEqual([]);

    await query(app.worker, sql`update members set role = 'viewer' where user_id = ${account.userId}`);
    expect((await openConsent(browser, path)).names).toEqual(['messages:read']);
  });

  test('the person chooses environment or inbox and lifetime; places of others are not found', async () => {
    const account = await createAccountQuickly(app);
    const other = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const inbox = (await app.call('/inboxes', { method: 'POST', token: account.token, body: {} })).json();
    const foreign = (await app.call('/inboxes', { method: 'POST', token: other.token, body: {} })).json();
    const { action } = await openConsent(browser, client.authorizePath());
    const permissions = ['messages:read'];
    const refused = await browser.submit(action, { decision: 'allow', permissions, inbox: foreign.email });
    expect(refused.statusCode).toBe(404);
    await consent(browser, client.authorizePath(), { permissions, inbox: inbox.email, days: '7' });
    const [connection] = (await app.call('/connections', { token: account.token })).json().data;
    expect(connection).toMatchObject({ inbox_id: inbox.id, env_id: inbox.env_id });
    const days = (Date.parse(connection.expires_at) - Date.parse(connection.created_at)) / 86_400_000;
    expect(days).toBeCloseTo(7, 3);
  });

  test('what cannot be stored, and a client that is gone, are refused', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const unusable: Record<string, string>[] = [
      { inbox: 'a\0b' },
      { environment_id: 'env_\0' },
      { environment_id: 'nonsense' },
    ];
    for (const field of unusable) {
      const { action, fields } = await openConsent(browser, client.authorizePath());
      const refused = await browser.submit(action, { ...fields, decision: 'allow', ...field });
      expect(refused.statusCode).toBeGreaterThanOrEqual(400);
      expect(refused.statusCode).toBeLessThan(500);
    }
    const { action, fields } = await openConsent(browser, client.authorizePath());
    await query(
      app.worker,
      sql`delete from connection_clients where id_hash = sha256(convert_to(${client.clientId}, 'UTF8'))`,
    );
    const gone = await browser.submit(action, { ...fields, decision: 'allow' });
    expect(gone.statusCode).toBe(404);
    expect((await app.call('/connections', { token: account.token })).json().data).toEqual([]);
  });

  test('a request that is resumed before the person decided asks again', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const { action } = await openConsent(browser, client.authorizePath());
    const uid = action.split(/[/?]/)[2] ?? '';
    for (const method of ['HEAD', 'GET'] as const) {
      const headers = { cookie: [...browser.cookies].map((pair) => pair.join('=')).join('; ') };
      const resumed = await app.app.inject({ method, url: `/oauth/authorize/${uid}`, headers });
      expect(String(resumed.headers.location ?? '')).not.toContain('code=');
    }
  });

  test('two answers to one request lead to one code', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const { action, fields } = await openConsent(browser, client.authorizePath());
    const answer = await browser.submit(action, { ...fields, decision: 'allow' });
    const [, next = ''] = /content="0; url=([^"]+)"/.exec(answer.body) ?? [];
    const headers = { cookie: [...browser.cookies].map((pair) => pair.join('=')).join('; ') };
    const both = await Promise.all([1, 2, 3].map(() => app.app.inject({ url: next, headers })));
    const codes = both
      .map(({ headers: { location } }) => String(location))
      .filter((to) => to.includes('code='));
    expect(codes).toHaveLength(1);
  });
});

describe('a consent that is submitted twice', () => {
  /** The form of one request, as a browser submits it. */
  async function openForm() {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const { page, action, fields } = await openConsent(browser, client.authorizePath());
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.body) ?? [];
    return {
      client,
      browser,
      submit: (choices = {}) => browser.post(action, { ...fields, csrf, decision: 'allow', ...choices }),
      list: async () => (await app.call('/connections', { token: account.token })).json().data,
    };
  }
  const nextOf = ({ body }: { body: string }) => /content="0; url=([^"]+)"/.exec(body)?.[1] ?? '';

  test('makes one connection, and the client gets its code', async () => {
    const { client, browser, submit, list } = await openForm();
    const answers = await Promise.all([submit(), submit(), submit()]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
    expect(await list()).toHaveLength(1);
    await browser.open(nextOf(answers[0] ?? { body: '' }));
    const code = new URL(browser.path).searchParams.get('code') ?? '';
    expect((await client.exchange(code)).statusCode).toBe(200);
    expect((await submit()).statusCode).toBe(404);
    expect(await list()).toHaveLength(1);
  });

  test('with other choices keeps the first answer', async () => {
    const { submit, list } = await openForm();
    expect((await submit({ permissions: ['messages:read'] })).statusCode).toBe(200);
    expect((await submit({ permissions: ['messages:read', 'messages:send'] })).statusCode).toBe(409);
    expect((await submit({ permissions: ['messages:read'], days: '7' })).statusCode).toBe(409);
    expect(await list()).toMatchObject([{ permissions: ['messages:read'] }]);
  });
});

test('a person has at most 100 connections in an organization, also if they consent at the same time', async () => {
  const { account, client, connectionId } = await connect(app);
  await query(
    app.worker,
    sql`insert into connections (id, org_id, user_id, client_id, client_name, redirect_to, permissions, method, factors,
        authenticated_at, expires_at)
      select 'con_' || lpad(n::text, 26, '0'), org_id, user_id, client_id, client_name, redirect_to, permissions, method,
        factors, authenticated_at, expires_at
      from connections, generate_series(1, 98) n where id = ${connectionId}`,
  );
  const forms = [];
  for (let count = 0; count < 4; count += 1) {
    const browser = await signedInBrowser(app, account.email);
    const { page, action, fields } = await openConsent(browser, client.authorizePath());
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.body) ?? [];
    forms.push(() => browser.post(action, { ...fields, csrf, decision: 'allow' }));
  }
  const answers = await Promise.all(forms.map((submit) => submit()));
  expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409, 409, 409]);
});

describe('requests for authorization', () => {
  test.each([
    ['without PKCE', { code_challenge: '', code_challenge_method: '' }],
    ['with a plain challenge', { code_challenge_method: 'plain' }],
    ['for an implicit token', { response_type: 'token' }],
    ['for an ID token', { response_type: 'code id_token' }],
    ['for another resource', { resource: 'https://elsewhere.example/mcp' }],
    ['with a request object', { request: 'e30.e30.' }],
    ['with an answer that is not in the query', { response_mode: 'form_post' }],
  ])('%s goes back to the client with an error', async (_, parameters) => {
    const client = await registerClient(app);
    const browser = createPageClient(app);
    const answer = await browser.open(client.authorizePath(parameters));
    expect(browser.path.startsWith(REDIRECT_URI) || answer.statusCode === 400).toBe(true);
    expect(browser.path).not.toMatch(/[?&#]code=/);
    expect(browser.path).not.toMatch(/^\/connect/);
    if (browser.path.startsWith(REDIRECT_URI)) expect(browser.path).toMatch(/[?#&]error=/);
  });

  test.each([
    ['another path', 'https://host.example/other'],
    ['another host', 'https://attacker.example/callback'],
    ['a user', 'https://host.example@attacker.example/callback'],
    ['a longer path', `${REDIRECT_URI}/../x`],
    ['http', 'http://host.example/callback'],
    ['a script', 'javascript:alert(1)'],
  ])('an address with %s gets no redirect', async (_, redirectUri) => {
    const client = await registerClient(app);
    const browser = createPageClient(app);
    const answer = await browser.open(client.authorizePath({ redirect_uri: redirectUri }));
    expect(answer.statusCode).toBe(400);
    expect(answer.headers.location).toBeUndefined();
  });

  test('an unknown client gets a page and no redirect', async () => {
    const client = await registerClient(app);
    const answer = await createPageClient(app).open(client.authorizePath({ client_id: 'app_unknown' }));
    expect(answer.statusCode).toBe(400);
    expect(answer.headers['content-type']).toContain('text/html');
  });

  test('a character that cannot be stored is refused', async () => {
    const client = await registerClient(app);
    const answer = await createPageClient(app).open(client.authorizePath({ state: 'a\0b' }));
    expect(answer.statusCode).toBe(400);
  });

  test('a network has at most 200 open requests, also at the same time, and others go on', async () => {
    const client = await registerClient(app);
    const open = (headers: Record<string, string>) =>
      app.app.inject({ url: client.authorizePath(), headers });
    const network = newNetwork();
    await open(network);
    await query(
      app.worker,
      sql`insert into connection_tokens (token_hash, kind, network_hash, payload, expires_at)
        select sha256(convert_to(${client.clientId} || n, 'UTF8')), kind, network_hash, payload, expires_at
        from (select * from connection_tokens where kind = 'interaction' order by created_at desc limit 1) t,
          generate_series(1, 190) n`,
    );
    const answers = await Promise.all(Array.from({ length: 30 }, () => open(network)));
    const targets = answers.map(({ headers }) => String(headers.location));
    expect(targets.filter((target) => target.startsWith('/connect/'))).toHaveLength(9);
    expect(targets.filter((target) => target.includes('error=temporarily_unavailable'))).toHaveLength(21);
    expect(String((await open(newNetwork())).headers.location)).toMatch(/^\/connect\//);
  });

  test('a request that is too long to be kept is refused', async () => {
    const client = await registerClient(app);
    const answer = await createPageClient(app).open(client.authorizePath({ state: 'a'.repeat(5_000) }));
    expect(answer.statusCode).toBe(400);
  });

  test('a loopback address may have another port, as programs on a computer need it', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app, { redirect_uris: ['http://127.0.0.1/callback'] });
    const browser = await signedInBrowser(app, account.email);
    const answered = await consent(
      browser,
      client.authorizePath({ redirect_uri: 'http://127.0.0.1:51234/callback' }),
    );
    expect(answered.origin).toBe('http://127.0.0.1:51234');
  });
});

describe('codes', () => {
  test('a stolen code is worth nothing without the verifier, for another client or address', async () => {
    const account = await createAccountQuickly(app);
    const [client, thief] = [await registerClient(app), await registerClient(app)];
    const browser = await signedInBrowser(app, account.email);
    const code = (await consent(browser, client.authorizePath())).searchParams.get('code') ?? '';
    for (const attempt of [
      thief.exchange(code),
      client.exchange(code, { code_verifier: 'a'.repeat(43) }),
      client.exchange(code, { code_verifier: '' }),
      client.exchange(code, { redirect_uri: 'https://attacker.example/callback' }),
    ])
      expect((await attempt).json()).toMatchObject({ error: expect.stringMatching(/^invalid_/) });
    expect((await client.exchange(code)).statusCode).toBe(200);
  });

  test('a code for the resource does not give a token for another one', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const code = (await consent(browser, client.authorizePath())).searchParams.get('code') ?? '';
    const refused = await client.exchange(code, { resource: 'https://elsewhere.example/mcp' });
    expect(refused.json().error).toBe('invalid_target');
  });

  test('a code that is used again ends the connection with the tokens that it gave', async () => {
    const { client, code, tokens, connectionId, account } = await connect(app);
    expect((await client.exchange(code)).json().error).toBe('invalid_grant');
    expect((await client.refresh(tokens.refresh_token)).json().error).toBe('invalid_grant');
    const audit = await app.call(`/org/audit-log?resource_id=${connectionId}`, { token: account.token });
    expect(audit.json().data[0]).toMatchObject({
      action: 'connection.ended',
      actor: { kind: 'connection', id: connectionId },
      details: { cause: 'reuse' },
    });
  });

  test('of two uses at the same time one gets tokens, and then none works', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const code = (await consent(browser, client.authorizePath())).searchParams.get('code') ?? '';
    const answers = await Promise.all([1, 2, 3, 4].map(() => client.exchange(code)));
    const succeeded = answers.filter(({ statusCode }) => statusCode === 200);
    expect(succeeded.length).toBeLessThanOrEqual(1);
    for (const { statusCode } of answers) expect([200, 400]).toContain(statusCode);
    for (const answer of succeeded)
      expect((await client.refresh(answer.json().refresh_token)).json().error).toBe('invalid_grant');
  });
});

describe('refresh tokens', () => {
  const age = (connectionId: string, seconds: number) =>
    query(
      app.worker,
      sql`update connection_tokens set consumed_at = consumed_at - ${seconds} * interval '1 second'
        where connection_id = ${connectionId}`,
    );

  test('rotate; the last rotation can be repeated for 30 seconds and leads to the same token', async () => {
    const { client, tokens } = await connect(app);
    const first = await client.refresh(tokens.refresh_token);
    const retried = await Promise.all([1, 2, 3].map(() => client.refresh(tokens.refresh_token)));
    expect(first.json().refresh_token).not.toBe(tokens.refresh_token);
    for (const retry of retried) expect(retry.json().refresh_token).toBe(first.json().refresh_token);
    expect((await client.refresh(first.json().refresh_token)).statusCode).toBe(200);
  });

  test('a replay after that ends the connection', async () => {
    const { client, tokens, connectionId } = await connect(app);
    const rotated = (await client.refresh(tokens.refresh_token)).json();
    await age(connectionId, 31);
    expect((await client.refresh(tokens.refresh_token)).json().error).toBe('invalid_grant');
    expect((await client.refresh(rotated.refresh_token)).json().error).toBe('invalid_grant');
  });

  test('a replay of an older rotation ends the connection, even within 30 seconds', async () => {
    const { client, tokens } = await connect(app);
    const second = (await client.refresh(tokens.refresh_token)).json();
    const third = (await client.refresh(second.refresh_token)).json();
    expect((await client.refresh(tokens.refresh_token)).json().error).toBe('invalid_grant');
    expect((await client.refresh(third.refresh_token)).json().error).toBe('invalid_grant');
  });

  test('work for their own client alone, and give no scope that was not granted', async () => {
    const { client, tokens } = await connect(app, { permissions: ['messages:read'] });
    const thief = await registerClient(app);
    expect((await thief.refresh(tokens.refresh_token)).json().error).toBe('invalid_grant');
    const more = await client.refresh(tokens.refresh_token, { scope: 'messages:read messages:send' });
    expect(more.json().error).toBe('invalid_scope');
  });

  test('end with the membership, the account and the connection', async () => {
    for (const end of [
      (id: string) => sql`delete from members where user_id = ${id}`,
      (id: string) => sql`update users set status = 'suspended' where id = ${id}`,
      (id: string) => sql`update users set deleted_at = now() where id = ${id}`,
      (id: string) =>
        sql`update connections set ended_at = now(), end_reason = 'person' where user_id = ${id}`,
      (id: string) =>
        sql`update connections set expires_at = now() - interval '1 second' where user_id = ${id}`,
    ]) {
      const { client, tokens, account } = await connect(app);
      await query(app.worker, end(account.userId));
      expect((await client.refresh(tokens.refresh_token)).json().error).toBe('invalid_grant');
    }
  });

  test('a client can give up its connection', async () => {
    const { client, tokens, account } = await connect(app);
    const revoked = await client.post('/oauth/revoke', { token: tokens.refresh_token });
    expect(revoked.statusCode).toBe(200);
    expect((await client.refresh(tokens.refresh_token)).json().error).toBe('invalid_grant');
    expect((await app.call('/connections', { token: account.token })).json().data).toEqual([]);
  });
});

describe('GET and DELETE /connections', () => {
  test('show and end one’s own; with members:manage all of the organization', async () => {
    const { account, connectionId, client, tokens } = await connect(app);
    const { organizationId } = account;
    const memberId = await createTestUser(app.worker, { organizationId, role: 'developer' });
    const { token } = await createTestSession(app.worker, memberId);
    expect((await app.call('/connections', { token })).json().data).toEqual([]);
    expectProblem(await app.call(`/connections/${connectionId}`, { method: 'DELETE', token }), 'not_found');
    const adminId = await createTestUser(app.worker, { organizationId, role: 'admin' });
    const admin = await createTestSession(app.worker, adminId);
    expect((await app.call('/connections', { token: admin.token })).json().data).toHaveLength(1);
    const ended = await app.call(`/connections/${connectionId}`, { method: 'DELETE', token: admin.token });
    expect(ended.statusCode).toBe(204);
    expect((await client.refresh(tokens.refresh_token)).json().error).toBe('invalid_grant');
    expectProblem(
      await app.call(`/connections/${connectionId}`, { method: 'DELETE', token: admin.token }),
      'not_found',
    );
  });

  test('a person cannot connect a program to a suspended organization', async () => {
    const account = await createAccountQuickly(app);
    const client = await registerClient(app);
    const browser = await signedInBrowser(app, account.email);
    const { action, fields } = await openConsent(browser, client.authorizePath());
    await query(
      app.worker,
      sql`update organizations set status = 'suspended' where id = ${account.organizationId}`,
    );
    const refused = await browser.submit(action, { ...fields, decision: 'allow' });
    expect(refused.statusCode).toBe(403);
    const rows = await query(app.worker, sql`select 1 from connections where user_id = ${account.userId}`);
    expect(rows).toEqual([]);
  });

  test('a member who leaves takes no connection along', async () => {
    const { account } = await connect(app);
    const { organizationId } = account;
    const memberId = await createTestUser(app.worker, { organizationId, role: 'developer' });
    await query(
      app.worker,
      sql`update connections set user_id = ${memberId} where org_id = ${organizationId}`,
    );
    const removed = await app.call(`/org/members/${memberId}`, {
      method: 'DELETE',
      token: account.token,
    });
    expect(removed.statusCode).toBeLessThan(300);
    expect((await app.call('/connections', { token: account.token })).json().data).toEqual([]);
  });
});
