import { generateKeyPairSync } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import {
  AUTHORIZED_PARTIES,
  CLIENT_AUTHENTICATIONS,
  expectClientAuthentication,
  OIDC_CLIENT,
  signInAtOidcProvider,
  startForgingProvider,
  startOidcProvider,
} from '../support/identity-providers.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import {
  activateUntested,
  Browser,
  createConfiguration,
  createSsoOrganization,
  JSON_ONLY,
  oidcSettings,
  readAttempts,
  SSO_TEST_CONFIG,
  type SsoOrganization,
} from '../support/sso.ts';
import { useResource } from '../support/use-resource.ts';

const app = useTestApp({ config: SSO_TEST_CONFIG });
const CALLBACK = '/api/v1/auth/sso/oidc/callback';
const provider = useResource(
  () => startOidcProvider(`${app.config.PUBLIC_URL}${CALLBACK}`),
  (started) => started.close(),
);
const forger = useResource(startForgingProvider, (started) => started.close());

let organization: SsoOrganization;
let configurationId: string;

async function configure(issuer: string): Promise<void> {
  organization = await createSsoOrganization(app);
  configurationId = await createConfiguration(
    app,
    organization.token,
    oidcSettings(issuer, organization.domain),
  );
  await activateUntested(app, organization.token, configurationId);
}

describe('with a real OpenID provider', () => {
  beforeEach(() => configure(provider.issuer));
  const address = (name = 'grace') => `${name}@${organization.domain}`;

  /** Signs in from beginning to end. */
  async function signIn(login = address(), headers = {}, query = '', browser = new Browser(app)) {
    const url = await browser.start(organization.organizationId, query);
    return browser.open(await signInAtOidcProvider(url.href, login), headers);
  }

  test('a first login makes the account and the membership, a second one finds it', async () => {
    const first = (await signIn(address(), JSON_ONLY)).json();
    expect(first).toMatchObject({
      token: expect.stringMatching(/^sst_/),
      user: {
        email: address(),
        email_verified: true,
        name: 'Grace Hopper',
        organizations: [{ id: organization.organizationId, role: 'developer' }],
      },
    });
    const second = (await signIn(address(), JSON_ONLY)).json();
    expect(second.user.id).toBe(first.user.id);
    expect((await app.call('/org', { token: second.token })).statusCode).toBe(200);
    const [session] = (await app.call('/user/me/sessions', { token: second.token })).json().data;
    expect(session).toMatchObject({ current: true });
    const attempts = await readAttempts(app, organization.token, configurationId);
    expect(attempts).toHaveLength(2);
    expect(attempts[0]).toMatchObject({ purpose: 'login', succeeded: true });
    expect(JSON.stringify(attempts)).not.toContain('grace@');
  });

  test('a browser gets the cookie of the session and is sent on to a path of this service', async () => {
    const browser = new Browser(app);
    const response = await signIn(address(), {}, '?redirect_to=/organization%3Ftab%3Dsso', browser);
    expect(response.statusCode).toBe(303);
    expect(response.headers.location).toBe('/organization?tab=sso');
    expect(browser.cookies.get('session')).toMatch(/^sst_/);
    const cookies = [response.headers['set-cookie']].flat().join('\n');
    expect(cookies).toMatch(/session=sst_\w+;.*HttpOnly; SameSite=Lax/);
  });

  test.each([
    '//evil.example',
    'https://evil.example/',
    '/\\evil.example',
    'javascript:alert(1)',
    '/%0d%0aset-cookie:x',
  ])('a browser is not sent to %s', async (target) => {
    const response = await signIn(address(), {}, `?redirect_to=${encodeURIComponent(target)}`);
    expect(response.statusCode).toBe(303);
    expect(new URL(String(response.headers.location), 'http://here.example').origin).toBe(
      'http://here.example',
    );
    expect(response.headers.location).not.toContain('evil');
  });

  test('the organization is found by its slug', async () => {
    const slug = `sso-${organization.domain.slice(0, 16)}`;
    await query(
      app.worker,
      sql`update organizations set slug = ${slug} where id = ${organization.organizationId}`,
    );
    expect((await new Browser(app).start(slug)).origin).toBe(provider.issuer);
    expectProblem(await new Browser(app).call('/auth/sso/no-such-organization'), 'not_found');
  });

  test('a test proves the configuration, and makes no account and no session', async () => {
    const draft = await createConfiguration(
      app,
      organization.token,
      oidcSettings(provider.issuer, organization.domain),
    );
    expectProblem(
      await app.call(`/org/sso/${draft}/activate`, { method: 'POST', token: organization.token }),
      'conflict',
    );
    const browser = new Browser(app);
    const begun = await browser.call(`/org/sso/${draft}/test`, { method: 'POST', token: organization.token });
    const finish = await signInAtOidcProvider(begun.json().redirect_url, address('tester'));
    const response = await browser.open(finish);
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toContain('text/html');
    expect(response.body).toContain('The test passed');
    expect(browser.cookies.has('session')).toBe(false);
    const users = await query(app.worker, sql`select from users where email = ${address('tester')}`);
    expect(users).toEqual([]);
    const activated = await app.call(`/org/sso/${draft}/activate`, {
      method: 'POST',
      token: organization.token,
    });
    expect(activated.json()).toMatchObject({ id: draft, status: 'active', tested_at: expect.any(String) });
    const { data } = (await app.call('/org/sso', { token: organization.token })).json();
    expect(data.map(({ status }: { status: string }) => status).sort()).toEqual(['active', 'disabled']);
  });

  test('an address outside the domains of the configuration is refused', async () => {
    expect(expectProblem(await signIn('grace@elsewhere.example', JSON_ONLY), 'sso_failed')).toMatchObject({
      check: 'domain',
    });
    const page = await signIn('grace@elsewhere.example');
    expect([page.statusCode, page.headers['content-type']]).toEqual([401, 'text/html; charset=utf-8']);
  });

  test('a domain that the organization no longer has verified is refused, also for people who joined', async () => {
    await signIn();
    await query(
      app.worker,
      sql`update domains set verification_status = 'failed' where org_id = ${organization.organizationId}`,
    );
    expect(expectProblem(await signIn(address(), JSON_ONLY), 'sso_failed')).toMatchObject({
      check: 'domain_verified',
    });
  });

  test.each(['suspended', 'deleted'])('the account of a %s person is refused', async (state) => {
    const { user } = (await signIn(address(), JSON_ONLY)).json();
    await query(
      app.worker,
      state === 'suspended'
        ? sql`update users set status = 'suspended' where id = ${user.id}`
        : sql`update users set deleted_at = now() where id = ${user.id}`,
    );
    expect(expectProblem(await signIn(address(), JSON_ONLY), 'sso_failed')).toMatchObject({
      check: 'account',
    });
  });

  test('a removed member does not come back', async () => {
    const { user } = (await signIn(address(), JSON_ONLY)).json();
    const removed = await app.call(`/org/members/${user.id}`, {
      method: 'DELETE',
      token: organization.token,
    });
    expect(removed.statusCode).toBe(204);
    expect(expectProblem(await signIn(address(), JSON_ONLY), 'sso_failed')).toMatchObject({
      check: 'account',
    });
    // Neither by a link to the account that is left.
    await query(app.worker, sql`delete from sso_identities where user_id = ${user.id}`);
    expect(expectProblem(await signIn(address(), JSON_ONLY), 'sso_failed')).toMatchObject({
      check: 'account',
    });
  });

  test('two concurrent first logins make one account', async () => {
    const browsers = [new Browser(app), new Browser(app)];
    const callbacks = await Promise.all(
      browsers.map(async (browser) =>
        signInAtOidcProvider((await browser.start(organization.organizationId)).href, address('twin')),
      ),
    );
    const answers = await Promise.all(
      browsers.map((browser, index) => browser.open(callbacks[index] as URL, JSON_ONLY)),
    );
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    expect(new Set(answers.map((answer) => answer.json().user.id)).size).toBe(1);
  });

  test('a fresh login asks the person again, and is fresh here; another one is not', async () => {
    const setUp = (token: string) => app.call('/auth/mfa/totp/setup', { method: 'POST', token, body: {} });
    const plain = (await signIn(address(), JSON_ONLY)).json();
    const jar = new Map<string, string>();
    const browser = new Browser(app);
    await signInAtOidcProvider((await browser.start(organization.organizationId)).href, address(), jar);
    const url = await browser.start(organization.organizationId, '?fresh=true');
    expect(url.searchParams.get('max_age')).toBe('0');
    const fresh = (
      await browser.open(await signInAtOidcProvider(url.href, address(), jar), JSON_ONLY)
    ).json();
    expect((await setUp(fresh.token)).statusCode).toBe(200);
    // The provider states when the person signed in there: a moment ago, in the plain login, too.
    expect((await setUp(plain.token)).statusCode).toBe(200);
  });

  describe('an address that has an account', () => {
    let userId: string;
    beforeEach(async () => {
      userId = await createTestUser(app.worker, { email: address('ada') });
    });

    test('is linked by a fresh sign-in to the account from the same browser, once', async () => {
      const browser = new Browser(app);
      const problem = expectProblem(await signIn(address('ada'), JSON_ONLY, '', browser), 'account_exists');
      const { token } = await createTestSession(app.worker, userId);
      const body = { link_token: problem.link_token };
      const link = (from: Browser, session: string) =>
        from.call('/auth/sso/link', { method: 'POST', token: session, body });
      const { token: stranger } = await createTestSession(app.worker, await createTestUser(app.worker));
      expectProblem(await link(new Browser(app), token), 'sso_failed');
      expectProblem(
        await app.call('/auth/sso/link', { method: 'POST', body, headers: browser.network }),
        'unauthenticated',
      );
      const answers = await Promise.all([link(browser, token), link(browser, token)]);
      expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 401]);
      const linked = answers.find(({ statusCode }) => statusCode === 200)?.json();
      expect(linked.user).toMatchObject({
        id: userId,
        organizations: [{ id: organization.organizationId, role: 'developer' }],
      });
      expectProblem(await link(browser, stranger), 'sso_failed');
      expect((await signIn(address('ada'), JSON_ONLY)).json().user.id).toBe(userId);
      const mails = await query(
        app.worker,
        sql`select from notifications where user_id = ${userId} and template = 'sso-linked'`,
      );
      expect(mails).toHaveLength(1);
    });

    test('is not linked with the session of another account', async () => {
      const browser = new Browser(app);
      const problem = expectProblem(await signIn(address('ada'), JSON_ONLY, '', browser), 'account_exists');
      const { token } = await createTestSession(app.worker, await createTestUser(app.worker));
      const body = { link_token: problem.link_token };
      expectProblem(await browser.call('/auth/sso/link', { method: 'POST', token, body }), 'sso_failed');
    });

    test('is not linked with a session that is not fresh', async () => {
      const browser = new Browser(app);
      const problem = expectProblem(await signIn(address('ada'), JSON_ONLY, '', browser), 'account_exists');
      const session = await createTestSession(app.worker, userId, {
        authenticatedAt: new Date(Date.now() - 3_600_000),
      });
      const body = { link_token: problem.link_token };
      const linked = await browser.call('/auth/sso/link', { method: 'POST', token: session.token, body });
      expectProblem(linked, 'session_expired');
    });

    test('leads a browser to the sign-in page, with the token in a cookie alone', async () => {
      const browser = new Browser(app);
      const response = await signIn(address('ada'), {}, '', browser);
      expect(response.statusCode).toBe(303);
      expect(response.headers.location).toBe('/login?next=%2Flogin%2Flink&notice=link-account');
      expect(browser.cookies.has('session')).toBe(false);
      expect(browser.cookies.has('sso-link')).toBe(true);
    });
  });
});

describe('a forged answer', () => {
  beforeEach(async () => {
    forger.state.metadata = { authorization_response_iss_parameter_supported: true };
    forger.state.override = {};
    forger.state.requests = [];
    await configure(forger.issuer);
  });

  const nowSeconds = () => Math.floor(Date.now() / 1000);

  async function begin(browser = new Browser(app), query = '') {
    const url = await browser.start(organization.organizationId, query);
    const { state = '', nonce = '' } = Object.fromEntries(url.searchParams);
    const claims = {
      iss: forger.issuer,
      aud: OIDC_CLIENT.clientId,
      sub: 'subject-1',
      nonce,
      iat: nowSeconds(),
      exp: nowSeconds() + 300,
      email: `grace@${organization.domain}`,
    };
    const parameters: Record<string, string> = { code: 'code', state, iss: forger.issuer };
    return { browser, url, claims, parameters };
  }

  const finish = (
    browser: Browser,
    parameters: Record<string, string>,
    headers: Record<string, string> = JSON_ONLY,
  ) => browser.call(`/auth/sso/oidc/callback?${new URLSearchParams(parameters)}`, { headers });

  test('is refused, while the true one passes', async () => {
    const { browser, claims, parameters } = await begin();
    forger.state.token = { claims };
    expect((await finish(browser, parameters)).statusCode).toBe(200);
    const [token] = forger.state.requests.filter(({ path }) => path === '/token');
    expect(token?.body).toContain('code_verifier=');
  });

  const otherKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  type Forgery = (claims: Record<string, unknown>) => Omit<NonNullable<typeof forger.state.token>, never>;
  const forgeries: [string, string, Forgery][] = [
    ['another nonce', 'nonce', (claims) => ({ claims: { ...claims, nonce: 'x' } })],
    ['no nonce', 'nonce', ({ nonce: _, ...claims }) => ({ claims })],
    ['another issuer', 'issuer', (claims) => ({ claims: { ...claims, iss: 'https://evil.example' } })],
    ['another audience', 'audience', (claims) => ({ claims: { ...claims, aud: 'another-client' } })],
    ['an issue in the future', 'time', (claims) => ({ claims: { ...claims, iat: nowSeconds() + 300 } })],
    [
      'a sign-in in the future',
      'time',
      (claims) => ({ claims: { ...claims, auth_time: nowSeconds() + 300 } }),
    ],
    ['an expired token', 'time', (claims) => ({ claims: { ...claims, exp: nowSeconds() - 300 } })],
    [
      'a token that is not valid yet',
      'time',
      (claims) => ({ claims: { ...claims, nbf: nowSeconds() + 300 } }),
    ],
    ['the algorithm none', 'signature', (claims) => ({ claims, header: { alg: 'none' } })],
    ['another key', 'signature', (claims) => ({ claims, key: otherKey })],
    ['an unknown key id', 'signature', (claims) => ({ claims, header: { kid: 'k2' } })],
    ['no subject', 'subject', ({ sub: _, ...claims }) => ({ claims })],
    ['an empty subject', 'subject', (claims) => ({ claims: { ...claims, sub: '' } })],
    ['a long subject', 'subject', (claims) => ({ claims: { ...claims, sub: 'x'.repeat(300) } })],
    ['no address', 'email', ({ email: _, ...claims }) => ({ claims })],
    ['two addresses', 'email', (claims) => ({ claims: { ...claims, email: [claims.email, 'x@y.example'] } })],
    [
      'an address with two @',
      'email',
      (claims) => ({ claims: { ...claims, email: `x@evil.example@${organization.domain}` } }),
    ],
    [
      'an address in the domain of this service',
      'email',
      (claims) => ({ claims: { ...claims, email: 'x@mail.test' } }),
    ],
    [
      'an unverified address',
      'email_verified',
      (claims) => ({ claims: { ...claims, email_verified: false } }),
    ],
    ['a subdomain', 'domain', (claims) => ({ claims: { ...claims, email: `x@sub.${organization.domain}` } })],
  ];
  test.each(forgeries)('with %s fails at the check of %s', async (_name, check, forge) => {
    const { browser, claims, parameters } = await begin();
    forger.state.token = forge(claims);
    expect(expectProblem(await finish(browser, parameters), 'sso_failed')).toMatchObject({ check });
    const [attempt] = await readAttempts(app, organization.token, configurationId);
    expect(attempt).toMatchObject({ succeeded: false });
    expect(attempt?.checks.at(-1)).toMatchObject({ name: check, passed: false });
    const identities = await query(
      app.worker,
      sql`select from sso_identities where org_id = ${organization.organizationId}`,
    );
    expect(identities).toEqual([]);
  });

  test.each(AUTHORIZED_PARTIES)('with %s: %j is accepted: %s', async (_case, change, isAccepted) => {
    const { browser, claims, parameters } = await begin();
    forger.state.token = { claims: { ...claims, ...change } };
    const answer = await finish(browser, parameters);
    if (isAccepted) expect(answer.statusCode).toBe(200);
    else expect(expectProblem(answer, 'sso_failed')).toMatchObject({ check: 'audience' });
  });

  test('signed by HMAC with the public key fails', async () => {
    const { browser, claims, parameters } = await begin();
    const pem = forger.publicKey.export({ format: 'pem', type: 'spki' });
    const { createSecretKey } = await import('node:crypto');
    forger.state.token = { claims, header: { alg: 'HS256' }, key: createSecretKey(Buffer.from(pem)) };
    expectProblem(await finish(browser, parameters), 'sso_failed');
  });

  test.each([
    ['a missing iss', { iss: undefined }],
    ['a foreign iss', { iss: 'https://evil.example' }],
    ['an error', { code: undefined, error: 'access_denied' }],
    ['no code', { code: undefined }],
    ['a token of the implicit flow', { id_token: 'x' }],
  ])('with %s in the response fails', async (_name, change) => {
    const { browser, claims, parameters } = await begin();
    forger.state.token = { claims };
    const changed = Object.fromEntries(
      Object.entries({ ...parameters, ...change }).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      ),
    );
    expectProblem(await finish(browser, changed), 'sso_failed');
    expect(forger.state.requests.filter(({ path }) => path === '/token')).toEqual([]);
  });

  test('without its state, with another one, and with two of them fails', async () => {
    const { browser, claims, parameters } = await begin();
    forger.state.token = { claims };
    const { state = '', ...without } = parameters;
    expectProblem(await finish(browser, without), 'sso_failed');
    expectProblem(await finish(browser, { ...without, state: state.replace(/.$/, '!') }), 'sso_failed');
    const twice = `/auth/sso/oidc/callback?${new URLSearchParams(parameters)}&state=${state}`;
    expectProblem(await browser.call(twice, { headers: JSON_ONLY }), 'validation_error');
    expect((await finish(browser, parameters)).statusCode).toBe(200);
  });

  test('in another browser fails, and does not use up the login', async () => {
    const { browser, claims, parameters } = await begin();
    forger.state.token = { claims };
    const other = await begin();
    expectProblem(await finish(new Browser(app), parameters), 'sso_failed');
    expectProblem(await finish(other.browser, parameters), 'sso_failed');
    expect((await finish(browser, parameters)).statusCode).toBe(200);
  });

  test('works once, of two concurrent ones too', async () => {
    const { browser, claims, parameters } = await begin();
    forger.state.token = { claims };
    const statuses = await Promise.all(
      [1, 2, 3].map(async () => (await finish(browser, parameters)).statusCode),
    );
    expect(statuses.sort()).toEqual([200, 401, 401]);
  });

  test('after ten minutes fails', async () => {
    const { browser, claims, parameters } = await begin();
    forger.state.token = { claims };
    await query(
      app.worker,
      sql`update sso_transactions set expires_at = date_trunc('milliseconds', now()) where configuration_id = ${configurationId}`,
    );
    expectProblem(await finish(browser, parameters), 'sso_failed');
  });

  test('after the configuration was disabled fails', async () => {
    const { browser, claims, parameters } = await begin();
    forger.state.token = { claims };
    const body = { disabled: true };
    const path = `/org/sso/${configurationId}`;
    expect((await app.call(path, { method: 'PATCH', token: organization.token, body })).statusCode).toBe(200);
    expectProblem(await finish(browser, parameters), 'sso_failed');
  });

  test('of another configuration of the same provider fails', async () => {
    const victim = await begin();
    const { organizationId } = organization;
    await configure(forger.issuer);
    const attacker = await begin();
    forger.state.token = { claims: { ...attacker.claims, email: victim.claims.email } };
    // The attacker's answer for the victim's login: its nonce is another one.
    expect(expectProblem(await finish(victim.browser, victim.parameters), 'sso_failed')).toMatchObject({
      check: 'nonce',
    });
    // And an address of the victim's domain through the attacker's own configuration.
    expect(expectProblem(await finish(attacker.browser, attacker.parameters), 'sso_failed')).toMatchObject({
      check: 'domain',
    });
    const members = await query(
      app.worker,
      sql`select from members where org_id = ${organizationId} and role <> 'owner'`,
    );
    expect(members).toEqual([]);
  });

  test('that does not say when the person signed in is no fresh login', async () => {
    const stale = await begin(new Browser(app), '?fresh=true');
    forger.state.token = { claims: stale.claims };
    expect(expectProblem(await finish(stale.browser, stale.parameters), 'sso_failed')).toMatchObject({
      check: 'authentication_time',
    });
    const old = await begin(new Browser(app), '?fresh=true');
    forger.state.token = { claims: { ...old.claims, auth_time: nowSeconds() - 3_600 } };
    expect(expectProblem(await finish(old.browser, old.parameters), 'sso_failed')).toMatchObject({
      check: 'authentication_time',
    });
    const plain = await begin();
    forger.state.token = { claims: { ...plain.claims, auth_time: nowSeconds() - 86_400 } };
    const { token } = (await finish(plain.browser, plain.parameters)).json();
    expectProblem(
      await app.call('/auth/mfa/totp/setup', { method: 'POST', token, body: {} }),
      'session_expired',
    );
  });

  test('is accepted as form and as JSON, which some providers send', async () => {
    const one = await begin();
    forger.state.token = { claims: one.claims };
    const form = await one.browser.call('/auth/sso/oidc/callback', {
      method: 'POST',
      raw: new URLSearchParams(one.parameters).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(form.statusCode).toBe(303);
    const two = await begin();
    forger.state.token = { claims: two.claims };
    const json = await two.browser.call('/auth/sso/oidc/callback', { method: 'POST', body: two.parameters });
    expect(json.json()).toMatchObject({ token: expect.stringMatching(/^sst_/) });
  });

  test('with any broken part is refused without a 500', async () => {
    for (const broken of [null, 1, 1e300, true, [], {}, '', 'x'.repeat(5_000), '\u0000', '\ud800'])
      for (const field of [
        'iss',
        'aud',
        'azp',
        'sub',
        'nonce',
        'exp',
        'iat',
        'email',
        'name',
        'email_verified',
        'auth_time',
      ]) {
        const { browser, claims, parameters } = await begin();
        forger.state.token = { claims: { ...claims, [field]: broken } };
        const { statusCode } = await finish(browser, parameters);
        expect({ field, broken, statusCode, ok: statusCode < 500 }).toEqual({
          field,
          broken,
          statusCode,
          ok: true,
        });
      }
  }, 60_000);
});

describe('a provider', () => {
  test.each(CLIENT_AUTHENTICATIONS)('that takes secrets by %j gets it in the %s', async (methods, place) => {
    forger.state.metadata = { token_endpoint_auth_methods_supported: methods };
    forger.state.override = {};
    await configure(forger.issuer);
    const browser = new Browser(app);
    const url = await browser.start(organization.organizationId);
    const query = new URLSearchParams({ code: 'code', state: url.searchParams.get('state') ?? '' });
    await browser.call(`/auth/sso/oidc/callback?${query}`, { headers: JSON_ONLY });
    expectClientAuthentication(
      forger.state.requests.findLast(({ path }) => path === '/token'),
      place,
    );
  });
});

describe('a provider that misbehaves', () => {
  beforeEach(async () => {
    forger.state.metadata = {};
    forger.state.override = {};
    await configure(forger.issuer);
  });
  const start = () => new Browser(app).call(`/auth/sso/${organization.organizationId}`);

  test.each([
    ['another issuer in its metadata', { issuer: 'https://login.example' }],
    ['a script as authorization endpoint', { authorization_endpoint: 'javascript:alert(1)' }],
    ['no authorization endpoint', { authorization_endpoint: undefined }],
  ])('is refused for %s', async (_name, metadata) => {
    forger.state.metadata = metadata;
    expect(expectProblem(await start(), 'sso_failed')).toMatchObject({ check: 'provider' });
  });

  test.each([
    ['answers with an error', { status: 500 }],
    ['answers with something else', { status: 200, headers: { 'content-type': 'text/html' }, body: '<p>' }],
    ['answers with broken JSON', { status: 200, headers: { 'content-type': 'application/json' }, body: '{' }],
    ['has no content', { status: 204 }],
    [
      'redirects to a metadata address',
      { status: 302, headers: { location: 'http://169.254.169.254/latest' } },
    ],
  ])('that %s is refused', async (_name, override) => {
    forger.state.override = { '/.well-known/openid-configuration': override };
    expect(expectProblem(await start(), 'sso_failed')).toMatchObject({ check: 'provider' });
  });

  test.each(['jwks_uri', 'token_endpoint', 'userinfo_endpoint'])(
    'cannot send the service to an internal address by its %s',
    async (name) => {
      forger.state.metadata = { [name]: 'http://169.254.169.254/latest/meta-data' };
      const browser = new Browser(app);
      const url = await browser.start(organization.organizationId);
      const { state = '', nonce = '' } = Object.fromEntries(url.searchParams);
      const now = Math.floor(Date.now() / 1000);
      forger.state.token = {
        claims: { iss: forger.issuer, aud: OIDC_CLIENT.clientId, sub: 's', nonce, iat: now, exp: now + 60 },
      };
      const query = new URLSearchParams({ code: 'code', state });
      expectProblem(
        await browser.call(`/auth/sso/oidc/callback?${query}`, { headers: JSON_ONLY }),
        'sso_failed',
      );
      const [attempt] = await readAttempts(app, organization.token, configurationId);
      expect(JSON.stringify(attempt)).toContain('not a public address');
    },
  );
});
