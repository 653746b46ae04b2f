import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { sql } from 'kysely';
import { findFreePort } from '../../dev/stack/ports.ts';
import { createAccountQuickly, type QuickAccount } from '../support/accounts.ts';
import { CommandLine, type RunningCommand } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { consent, signedInBrowser } from '../support/oauth-client.ts';
import { createKey, createOrganization } from '../support/organizations.ts';
import type { Fields } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';

jest.setTimeout(60_000);

let app: TestApp;
let origin: string;
let cli: CommandLine;
let account: QuickAccount;
beforeAll(async () => {
  const port = await findFreePort();
  origin = `http://localhost:${port}`;
  app = await startTestApp({ config: { TRUST_PROXY: '127.0.0.1', PUBLIC_URL: origin } });
  await app.app.listen({ host: '127.0.0.1', port });
});
afterAll(() => app?.close());
beforeEach(async () => {
  cli = await CommandLine.build();
  account = await createAccountQuickly(app);
});
afterEach(() => cli[Symbol.asyncDispose]());

const errorOf = (stderr: string) => JSON.parse(stderr).error;

/** The address that the person opens. */
async function shownUrl({ stderr }: RunningCommand): Promise<URL> {
  await eventually(() => expect(stderr()).toMatch(/http:\S+\n/));
  return new URL(/http:\S+/.exec(stderr())?.[0] ?? '');
}

/** Logs in as a person whose browser is another program. */
async function login(parameters: string[] = [], decision: Fields = {}) {
  const command = cli.start(['login', '--base-url', origin, '--no-browser', ...parameters]);
  const url = await shownUrl(command);
  const browser = await signedInBrowser(app, account.email);
  const callback = await consent(browser, `${url.pathname}${url.search}`, decision);
  const page = await fetch(callback);
  return { url, callback, page, result: await command.ended };
}

const readProfile = (name = 'default') => JSON.parse(readFileSync(cli.profiles, 'utf8')).profiles[name];

describe('login', () => {
  test('signs in with the browser, keeps the tokens to itself, and every command works until logout', async () => {
    const { url, callback, page, result } = await login();
    expect(url.origin).toBe(origin);
    expect(url.searchParams.get('code_challenge_method')).toBe('S256');
    expect(callback.hostname).toBe('127.0.0.1');
    expect(await page.text()).toContain('You are logged in');
    expect(result).toMatchObject({ exitCode: 0 });
    expect(result.json).toMatchObject({ profile: 'default', kind: 'connection', user_id: account.userId });
    expect(`${result.stdout}${result.stderr}`).not.toMatch(/c[ar]t_/);
    expect(statSync(cli.profiles).mode & 0o777).toBe(0o600);

    const whoami = await cli.run(['whoami']);
    expect(whoami.json).toMatchObject({ kind: 'connection', org_id: account.organizationId });
    const { access_token } = readProfile().sign_in;
    const logout = await cli.run(['logout']);
    expect(logout.json).toEqual({ profile: 'default', ended: true });
    expect((await app.call('/me', { token: access_token })).statusCode).toBe(401);
    const after = await cli.run(['whoami']);
    expect(after.exitCode).toBe(3);
    expect(errorOf(after.stderr)).toMatchObject({ code: 'no_credential' });
  });

  test('ends with 3 when the person cancels', async () => {
    const { result } = await login([], { decision: 'deny' });
    expect(result.exitCode).toBe(3);
    expect(errorOf(result.stderr.split('\n')[1] ?? '')).toMatchObject({ code: 'access_denied' });
  });

  test('takes no code of another sign-in or service, and ends with 130 at Ctrl-C', async () => {
    const command = cli.start(['login', '--base-url', origin, '--no-browser']);
    const url = await shownUrl(command);
    const redirect = url.searchParams.get('redirect_uri') ?? '';
    expect((await fetch(`${redirect}?code=x&state=other&iss=${origin}`)).status).toBe(404);
    expect((await fetch(redirect.replace('/callback', '/'))).status).toBe(404);
    expect(command.child.exitCode).toBeNull();
    command.child.kill('SIGINT');
    expect((await command.ended).exitCode).toBe(130);

    const other = cli.start(['login', '--base-url', origin, '--no-browser']);
    const { searchParams } = await shownUrl(other);
    const state = searchParams.get('state');
    await fetch(`${searchParams.get('redirect_uri')}?code=x&state=${state}&iss=https://evil.example`);
    expect((await other.ended).exitCode).toBe(3);
  });

  test('takes a key from standard input, and never as an argument', async () => {
    const { token } = await createKey(app.worker, { organizationId: account.organizationId });
    const result = await cli.run(['login', '--with-key', '--base-url', origin, '--profile', 'key'], {
      input: `${token}\n`,
    });
    expect(result.json).toMatchObject({ profile: 'key', kind: 'api_key' });
    expect(`${result.stdout}${result.stderr}`).not.toContain(token);
    expect((await cli.run(['whoami', '--profile', 'key'])).exitCode).toBe(0);
    for (const option of ['--api-key', '--key', '--token'])
      expect((await cli.run(['whoami', option, token])).exitCode).toBe(2);

    const wrong = await cli.run(['login', '--with-key', '--base-url', origin], { input: 'ask_live_wrong' });
    expect(wrong.exitCode).toBe(3);
    expect(errorOf(wrong.stderr)).toMatchObject({ code: 'unauthenticated' });
    expect(readProfile()).toBeUndefined();
  });

  test('may be limited by the person, and webhooks trigger and replay need a key', async () => {
    await login([], { permissions: ['inboxes:read'] });
    const refused = await cli.run(['inboxes', 'create']);
    expect(refused.exitCode).toBe(3);
    expect(errorOf(refused.stderr)).toMatchObject({
      code: 'permission_denied',
      request_id: expect.any(String),
    });
    for (const parameters of [
      ['webhooks', 'trigger', 'message.received'],
      ['replay', 'whd_1'],
      ['replay', 'whe_1', '--since', '2026-01-01T00:00:00Z'],
    ]) {
      const { exitCode, stderr } = await cli.run(parameters);
      expect(exitCode).toBe(3);
      expect(errorOf(stderr)).toMatchObject({ code: 'key_required' });
    }
  });
});

describe('a sign-in that has to be renewed', () => {
  const expire = () => {
    const content = JSON.parse(readFileSync(cli.profiles, 'utf8'));
    content.profiles.default.sign_in.expires_at = new Date(0).toISOString();
    writeFileSync(cli.profiles, JSON.stringify(content));
  };
  const refreshTokens = () =>
    query<{ consumed: boolean }>(
      app.worker,
      sql`select consumed_at is not null as consumed from connection_tokens t
          join connections c on c.id = t.connection_id
          where c.user_id = ${account.userId} and kind = 'refresh_token'`,
    );

  test('is renewed once by commands that run at the same time, and none loses the token', async () => {
    await login();
    const before = readProfile().sign_in;
    expire();
    const results = await Promise.all(Array.from({ length: 4 }, () => cli.run(['whoami'])));
    expect(results.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual(Array(4).fill([0, '']));
    const after = readProfile().sign_in;
    expect(after.refresh_token).not.toBe(before.refresh_token);
    expect((await refreshTokens()).map(({ consumed }) => consumed).sort()).toEqual([false, true]);
    expect((await cli.run(['whoami'])).exitCode).toBe(0);
  });

  test('is renewed when the service refuses the token earlier', async () => {
    await login();
    await query(app.worker, sql`delete from connection_tokens where kind = 'access_token'`);
    expect(await cli.run(['whoami'])).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('ends with 3 when the person has ended the connection', async () => {
    await login();
    const { data } = (await app.call('/connections', { token: account.token })).json();
    await app.call(`/connections/${data[0].id}`, { method: 'DELETE', token: account.token });
    const { exitCode, stderr } = await cli.run(['whoami']);
    expect(exitCode).toBe(3);
    expect(errorOf(stderr)).toMatchObject({ code: 'sign_in_ended', fix: expect.stringContaining('login') });
  });
});

describe('a key', () => {
  test('goes to no other address: redirects are not followed, and plain http goes to this computer alone', async () => {
    const { token } = await createOrganization(app.worker);
    const seen: { server: string; request: IncomingMessage }[] = [];
    const serve = async (server: string, location?: string) => {
      const listening = createServer((request, response) => {
        seen.push({ server, request });
        response
          .writeHead(location === undefined ? 200 : 307, location === undefined ? {} : { location })
          .end();
      });
      await new Promise<void>((done) => listening.listen(0, '127.0.0.1', done));
      return {
        url: `http://127.0.0.1:${(listening.address() as AddressInfo).port}`,
        close: () => listening.close(),
      };
    };
    const target = await serve('target');
    const redirecting = await serve('redirecting', `${target.url}/api/v1/me`);
    try {
      const env = { AGENT_EMAIL_API_KEY: token, AGENT_EMAIL_BASE_URL: redirecting.url };
      for (const parameters of [
        ['whoami'],
        ['send', '--from', 'inb_1', '--to', 'a@b.example', '--text', 'x'],
        ['doctor'],
      ])
        expect((await cli.run(parameters, { env })).exitCode).toBe(1);
      const mcp = await cli.run(['mcp'], { env, input: '{"jsonrpc":"2.0","id":1,"method":"ping"}\n' });
      expect(JSON.parse(mcp.stdout).error).toBeDefined();
      expect(new Set(seen.map(({ server }) => server))).toEqual(new Set(['redirecting']));
      const remote = await cli.run(['whoami'], {
        env: { ...env, AGENT_EMAIL_BASE_URL: 'http://mail.example.com' },
      });
      expect(remote.exitCode).toBe(2);
    } finally {
      target.close();
      redirecting.close();
    }
  });
});
