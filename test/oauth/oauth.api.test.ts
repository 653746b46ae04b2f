import { createHash, createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createOpenIdClient } from '../../domain/oauth/oauth-client.ts';
import { createOauthSecrets } from '../../domain/oauth/oauth-transactions.ts';
import { boundedFetch } from '../../platform/bounded-fetch.ts';
import { createOidcClient } from '../../platform/oidc-client.ts';
import { readAccountMail } from '../support/account-mail.ts';
import { createAccountQuickly, newAddress, newNetwork, PASSWORD, signIn } from '../support/accounts.ts';
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
import { createTestSession } from '../support/sessions.ts';
import { useResource } from '../support/use-resource.ts';

const CALLBACK = 'http://localhost:3000/api/v1/auth/oauth';
const real = useResource(
  () => startOidcProvider(`${CALLBACK}/real/callback`),
  (provider) => provider.close(),
);
/** Known to verify addresses. */
const forge = useResource(startForgingProvider, (provider) => provider.close());
/** Not known to verify addresses. */
const other = useResource(startForgingProvider, (provider) => provider.close());
/** Stands in for GitHub and its API. */
const hub = useResource(startForgingProvider, (provider) => provider.close());

const app = useTestApp(() => ({
  config: {
    TRUST_PROXY: '127.0.0.1',
    OAUTH_GITHUB_CLIENT_ID: OIDC_CLIENT.clientId,
    OAUTH_GITHUB_CLIENT_SECRET: OIDC_CLIENT.clientSecret,
    OAUTH_GITHUB_URL: hub.issuer,
    OAUTH_GITHUB_API_URL: hub.issuer,
    OAUTH_OIDC_PROVIDERS: JSON.stringify([
      { ...clientOf('real', real.issuer), verifies_email: true },
      { ...clientOf('forge', forge.issuer), verifies_email: true },
      clientOf('other', other.issuer),
    ]),
  },
}));

const clientOf = (id: string, issuer: string) => ({
  id,
  name: id.toUpperCase(),
  issuer,
  client_id: OIDC_CLIENT.clientId,
  client_secret: OIDC_CLIENT.clientSecret,
});

interface Started {
  provider: string;
  url: URL;
  state: string;
  nonce: string;
  /** Header of the browser that started it. */
  cookie: string;
}

const JSON_ONLY = { accept: 'application/json' };
const BROWSER = { accept: 'text/html,application/xhtml+xml' };

function readStart(provider: string, redirectUrl: string, cookies: string | string[] | undefined): Started {
  const url = new URL(redirectUrl);
  const cookie =
    [cookies]
      .flat()
      .find((line) => line?.startsWith('oauth='))
      ?.split(';')[0] ?? '';
  expect(cookie).toMatch(/^oauth=\w{43}$/);
  const [state, nonce] = ['state', 'nonce'].map((name) => url.searchParams.get(name) ?? '');
  return { provider, url, state: state ?? '', nonce: nonce ?? '', cookie };
}

async function start(provider: string, query = ''): Promise<Started> {
  const response = await app.call(`/auth/oauth/${provider}${query}`, {
    headers: { ...newNetwork(), ...JSON_ONLY },
  });
  expect(response.statusCode).toBe(200);
  return readStart(provider, response.json().redirect_url, response.headers['set-cookie']);
}

async function startLink(provider: string, token: string, body: object = {}): Promise<Started> {
  const response = await app.call(`/user/me/oauth-providers/${provider}/link`, {
    method: 'POST',
    token,
    body,
  });
  expect(response.statusCode).toBe(200);
  return readStart(provider, response.json().redirect_url, response.headers['set-cookie']);
}

/** The provider sends a browser back. */
function comeBack(
  { provider, state, cookie }: Pick<Started, 'provider' | 'state' | 'cookie'>,
  parameters: Record<string, string> = {},
  headers: Record<string, string> = JSON_ONLY,
) {
  const query = new URLSearchParams({ code: 'a-code', state, ...parameters });
  return app.call(`/auth/oauth/${provider}/callback?${query}`, {
    headers: { ...newNetwork(), ...(cookie === '' ? {} : { cookie }), ...headers },
  });
}

const seconds = () => Math.floor(Date.now() / 1000);
/** The token that the forging provider answers with next. */
function prepare(
  provider: typeof forge,
  { nonce }: Pick<Started, 'nonce'>,
  claims: Record<string, unknown> = {},
  rest: Partial<NonNullable<(typeof forge)['state']['token']>> = {},
) {
  provider.state.token = {
    claims: {
      iss: provider.issuer,
      aud: OIDC_CLIENT.clientId,
      sub: 'subject-1',
      exp: seconds() + 300,
      iat: seconds(),
      nonce,
      email: newAddress(),
      email_verified: true,
      name: 'Grace Hopper',
      ...claims,
    },
    ...rest,
  };
}

async function signInWith(
  provider: typeof forge,
  id: string,
  claims: Record<string, unknown>,
  headers?: Record<string, string>,
) {
  const started = await start(id);
  prepare(provider, started, claims);
  return comeBack(started, {}, headers);
}

const newSubject = () => `subject-${randomBytes(6).toString('hex')}`;
const countUsers = async (email: string) =>
  (await query(app.worker, sql`select from users where email = ${email}`)).length;
const templates = async (email: string) =>
  (await readAccountMail(app, email)).map(({ template }) => template);
const auditActions = async (userId: string) => {
  const rows = await query<{ action: string }>(
    app.worker,
    sql`select a.action from audit_entries a join members m on m.org_id = a.org_id where m.user_id = ${userId} order by a.id`,
  );
  return rows.map(({ action }) => action);
};

function prepareGithub(
  user: object,
  emails: unknown = [{ email: 'unused@people.example', primary: false, verified: true }],
) {
  const json = (value: unknown) => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(value),
  });
  hub.state.override = {
    '/login/oauth/access_token': json({ access_token: 'gho_x', token_type: 'bearer', scope: 'user:email' }),
    '/user': json(user),
    '/user/emails': json(emails),
  };
}

beforeEach(() => {
  forge.state.override = {};
  other.state.override = {};
});

describe('a first sign-in', () => {
  test('with a real OpenID provider creates account and organization; the next one finds them', async () => {
    const email = newAddress();
    const jar = new Map<string, string>();
    const enter = async () => {
      const started = await start('real');
      const arrived = await signInAtOidcProvider(started.url.href, email, jar);
      expect(`${arrived.origin}${arrived.pathname}`).toBe(`${CALLBACK}/real/callback`);
      return comeBack(started, Object.fromEntries(arrived.searchParams));
    };
    const first = (await enter()).json();
    expect(first).toMatchObject({
      token: expect.stringMatching(/^sst_/),
      user: { email, email_verified: true, name: 'Grace Hopper', organizations: [{ role: 'owner' }] },
    });
    expect((await app.call('/org', { token: first.token })).json()).toMatchObject({
      name: 'Grace Hopper’s organization',
    });
    expect((await enter()).json().user.id).toBe(first.user.id);
    const sessions = (await app.call('/user/me/sessions', { token: first.token })).json().data;
    expect(sessions).toHaveLength(2);
    expect(sessions[0].method).toBe('oauth');
  });

  test('with GitHub takes the verified primary address, and the number of the user as its key', async () => {
    const email = newAddress();
    const id = randomBytes(4).readUInt32BE();
    const emails = [
      { email: newAddress(), primary: false, verified: true },
      { email: email.toUpperCase(), primary: true, verified: true },
    ];
    prepareGithub({ id, login: 'ghopper', name: 'Grace' }, emails);
    const first = (await comeBack(await start('github'))).json();
    expect(first.user).toMatchObject({ email, name: 'Grace' });
    prepareGithub({ id, login: 'renamed', name: 'Grace' }, []);
    expect((await comeBack(await start('github'))).json().user.id).toBe(first.user.id);
    prepareGithub({ id: id + 1, login: 'ghopper' }, emails);
    expectProblem(await comeBack(await start('github')), 'account_exists');
  });

  test.each([
    ['unverified', [{ email: 'a@people.example', primary: true, verified: false }]],
    ['not primary', [{ email: 'a@people.example', primary: false, verified: true }]],
    ['missing', []],
    ['no list', { message: 'Not Found' }],
    ['a list', [{ email: ['a@people.example', 'b@people.example'], primary: true, verified: true }]],
  ])('with GitHub is refused if the address is %s', async (_case, emails) => {
    prepareGithub({ id: randomBytes(4).readUInt32BE() }, emails);
    expectProblem(await comeBack(await start('github')), 'unprocessable');
  });

  test.each([{ id: 'x' }, {}, { id: 1.5 }, []])('with GitHub is refused for the user %j', async (user) => {
    prepareGithub(user);
    expectProblem(await comeBack(await start('github')), 'oauth_failed');
  });

  test('in a browser sets the session cookie and goes on to a page', async () => {
    const started = await start('forge', '?redirect_to=/organization');
    prepare(forge, started, { sub: newSubject() });
    const response = await comeBack(started, {}, BROWSER);
    expect([response.statusCode, response.headers.location]).toEqual([303, '/organization']);
    const cookies = [response.headers['set-cookie']].flat().join('\n');
    expect(cookies).toMatch(/^session=sst_\w+; .*HttpOnly; SameSite=Lax$/m);
    expect(cookies).toMatch(/^oauth=;/m);
  });

  test('gives a name that is no name no chance to advertise', async () => {
    const answer = await signInWith(forge, 'forge', {
      sub: newSubject(),
      name: 'Win at https://casino.example',
    });
    expect(answer.json().user).toMatchObject({ name: null, organizations: [{ name: 'My organization' }] });
  });

  test('asks a person whose address has an account to sign in as before', async () => {
    const { email } = await createAccountQuickly(app);
    const subject = newSubject();
    expectProblem(await signInWith(forge, 'forge', { sub: subject, email }), 'account_exists');
    expectProblem(
      await signInWith(forge, 'forge', { sub: subject, email: email.toUpperCase() }),
      'account_exists',
    );
    const page = await signInWith(forge, 'forge', { sub: subject, email }, BROWSER);
    expect(page.headers.location).toBe('/login?notice=account-exists');
  });

  test.each([
    ['unverified', 'forge', { email_verified: false }],
    ['verified by a word', 'forge', { email_verified: 'true' }],
    ['of a provider that is not known to verify them', 'other', {}],
    ['a list', 'forge', { email: ['a@people.example', 'b@people.example'] }],
    ['missing', 'forge', { email: undefined }],
    ['quoted', 'forge', { email: '"a b"@people.example' }],
    ['two in one', 'forge', { email: 'a@x@people.example' }],
    ['not ASCII', 'forge', { email: 'pıp@people.example' }],
    ['one that any customer can create', 'forge', { email: 'someone@mail.test' }],
  ])('creates nothing if the address is %s', async (_case, id, claims) => {
    const provider = id === 'forge' ? forge : other;
    const subject = newSubject();
    expectProblem(await signInWith(provider, id, { sub: subject, ...claims }), 'unprocessable');
    const { email } = provider.state.token?.claims ?? {};
    for (const address of [email].flat())
      if (typeof address === 'string') expect(await countUsers(address)).toBe(0);
    const links = await query(app.worker, sql`select from oauth_identities where subject = ${subject}`);
    expect(links).toEqual([]);
  });

  test('ends what another person has begun with the address', async () => {
    const email = newAddress();
    const fields = { password: 'attacker-chosen-password', name: 'Eve', organization_name: 'Eve' };
    await app.call('/auth/signup', { method: 'POST', body: { email, ...fields }, headers: newNetwork() });
    const { token } = (await readAccountMail(app, email)).at(-1) ?? {};
    await signInWith(forge, 'forge', { sub: newSubject(), email });
    const body = { token, password: 'attacker-chosen-password' };
    const late = await app.call('/auth/verify-email', { method: 'POST', body, headers: newNetwork() });
    expectProblem(late, 'invalid_credentials');
  });

  test('creates one account of two concurrent ones', async () => {
    const [one, two] = [await start('forge'), await start('github')];
    const email = newAddress();
    prepare(forge, one, { sub: newSubject(), email });
    prepareGithub({ id: randomBytes(4).readUInt32BE() }, [{ email, primary: true, verified: true }]);
    const statuses = (await Promise.all([comeBack(one), comeBack(two)])).map(({ statusCode }) => statusCode);
    expect(statuses.sort()).toEqual([200, 409]);
    expect(await countUsers(email)).toBe(1);
  });
});

describe('an answer', () => {
  test('is exchanged with the PKCE verifier of its own request', async () => {
    const started = await start('forge');
    prepare(forge, started, { sub: newSubject() });
    expect((await comeBack(started)).statusCode).toBe(200);
    const exchange = new URLSearchParams(
      forge.state.requests.findLast(({ path }) => path === '/token')?.body,
    );
    const challenge = createHash('sha256')
      .update(exchange.get('code_verifier') ?? '')
      .digest('base64url');
    expect(started.url.searchParams.get('code_challenge')).toBe(challenge);
    expect(started.url.searchParams.get('code_challenge_method')).toBe('S256');
    expect(exchange.get('redirect_uri')).toBe(`${CALLBACK}/forge/callback`);
  });

  test('is refused without the cookie, and in another browser', async () => {
    const started = await start('forge');
    const stranger = await start('forge');
    prepare(forge, started, { sub: newSubject() });
    expectProblem(await comeBack({ ...started, cookie: '' }), 'oauth_failed');
    expectProblem(await comeBack({ ...started, cookie: stranger.cookie }), 'oauth_failed');
    expect((await comeBack(started)).statusCode).toBe(200);
  });

  test('is accepted once, also by two at the same time', async () => {
    const started = await start('forge');
    prepare(forge, started, { sub: newSubject() });
    const statuses = (await Promise.all([1, 2, 3].map(() => comeBack(started)))).map(
      ({ statusCode }) => statusCode,
    );
    expect(statuses.sort()).toEqual([200, 401, 401]);
    expectProblem(await comeBack(started), 'oauth_failed');
  });

  test('is refused after ten minutes', async () => {
    const started = await start('forge');
    prepare(forge, started, { sub: newSubject() });
    await query(
      app.worker,
      sql`update oauth_transactions set expires_at = date_trunc('milliseconds', now())`,
    );
    expectProblem(await comeBack(started), 'oauth_failed');
  });

  test('is refused at the callback of another provider', async () => {
    const started = await start('forge');
    prepare(other, started, { sub: newSubject() });
    other.state.requests.length = 0;
    expectProblem(await comeBack({ ...started, provider: 'other' }), 'oauth_failed');
    // The code of one provider must not reach another's token endpoint.
    expect(other.state.requests).toEqual([]);
  });

  test('is refused with the issuer of another provider', async () => {
    const started = await start('forge');
    prepare(forge, started, { sub: newSubject() });
    expectProblem(await comeBack(started, { iss: other.issuer }), 'oauth_failed');
  });

  test.each([
    ['a wrong state', { state: 'x'.repeat(43) }],
    ['an empty state', { state: '' }],
    ['an error', { error: 'access_denied' }],
  ])('is refused with %s', async (_case, parameters) => {
    const started = await start('forge');
    prepare(forge, started, { sub: newSubject() });
    expectProblem(await comeBack(started, parameters as Record<string, string>), 'oauth_failed');
  });

  test.each(['state', 'code'])('is refused with %s twice', async (name) => {
    const started = await start('forge');
    prepare(forge, started, { sub: newSubject() });
    const query = new URLSearchParams({ code: 'a-code', state: started.state });
    query.append(name, query.get(name) ?? '');
    const headers = { ...newNetwork(), ...JSON_ONLY, cookie: started.cookie };
    expectProblem(await app.call(`/auth/oauth/forge/callback?${query}`, { headers }), 'oauth_failed');
  });

  test('is refused without code and state', async () => {
    expectProblem(await app.call('/auth/oauth/forge/callback', { headers: JSON_ONLY }), 'oauth_failed');
    const page = await app.call('/auth/oauth/forge/callback', { headers: BROWSER });
    expect(page.headers.location).toBe('/login?notice=provider-failed');
  });

  test('may have parameters of the provider’s own', async () => {
    const started = await start('forge');
    prepare(forge, started, { sub: newSubject() });
    const extra = { scope: 'openid', authuser: '0', prompt: 'none', session_state: 'x' };
    expect((await comeBack(started, extra)).statusCode).toBe(200);
  });
});

describe('an ID token', () => {
  const foreignKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

  test.each([
    ['a wrong nonce', { nonce: 'x' }],
    ['no nonce', { nonce: undefined }],
    ['the issuer of another provider', { iss: 'https://accounts.google.com' }],
    ['no issuer', { iss: undefined }],
    ['another audience', { aud: 'another-client' }],
    ['an expiry in the past', { exp: seconds() - 3_600 }],
    ['no expiry', { exp: undefined }],
    ['no subject', { sub: undefined }],
    ['a subject that is no text', { sub: 7 }],
  ])('is refused with %s', async (_case, claims) => {
    expectProblem(await signInWith(forge, 'forge', { sub: newSubject(), ...claims }), 'oauth_failed');
  });

  test.each(AUTHORIZED_PARTIES)('with %s: %j is accepted: %s', async (_case, claims, isAccepted) => {
    const answer = await signInWith(forge, 'forge', { sub: newSubject(), ...claims });
    if (isAccepted) expect(answer.statusCode).toBe(200);
    else expectProblem(answer, 'oauth_failed');
  });

  test.each([
    ['a time of issue', 'iat'],
    ['a time of sign-in', 'auth_time'],
  ])('is refused with %s in the future', async (_case, claim) => {
    const claims = { sub: newSubject(), [claim]: seconds() + 300 };
    expectProblem(await signInWith(forge, 'forge', claims), 'oauth_failed');
  });

  test.each([
    ['no signature (alg none)', { header: { alg: 'none' } }],
    ['the signature of another key', { key: foreignKey }],
    ['the signature of an unknown key', { key: foreignKey, header: { kid: 'k2' } }],
  ])('is refused with %s', async (_case, rest) => {
    const started = await start('forge');
    prepare(forge, started, { sub: newSubject() }, rest);
    expectProblem(await comeBack(started), 'oauth_failed');
  });

  test('is refused if it is signed with the public key as a shared secret', async () => {
    const pem = createPublicKey(forge.publicKey.export({ format: 'pem', type: 'spki' }));
    const { createSecretKey } = await import('node:crypto');
    const key = createSecretKey(Buffer.from(pem.export({ format: 'pem', type: 'spki' })));
    const started = await start('forge');
    prepare(forge, started, { sub: newSubject() }, { header: { alg: 'HS256' }, key });
    expectProblem(await comeBack(started), 'oauth_failed');
  });

  test.each([
    ['an error', { status: 400, body: '{"error":"invalid_grant"}' }],
    ['no JSON', { status: 200, body: '<html>' }],
    ['no ID token', { status: 200, body: '{"access_token":"x","token_type":"bearer"}' }],
    ['a redirect', { status: 307, headers: { location: 'http://127.0.0.1:1/' } }],
    ['more than a mebibyte', { status: 200, body: ' '.repeat(1_100_000) }],
  ])('is not read from %s', async (_case, override) => {
    const started = await start('forge');
    forge.state.override['/token'] = { headers: { 'content-type': 'application/json' }, ...override };
    expectProblem(await comeBack(started), 'oauth_failed');
  });

  test.each([
    ['of Gmail', { email: 'someone@gmail.com' }, true],
    ['of a Workspace', { email: 'someone@people.example', hd: 'people.example' }, true],
    ['of elsewhere, which Google verified once', { email: 'someone@people.example' }, false],
    ['that is not verified', { email: 'someone@gmail.com', email_verified: false }, false],
  ])('of Google proves an address %s: %j %s', async (_case, claims, isVerified) => {
    const client = createOpenIdClient(
      {
        kind: 'oidc',
        id: 'google',
        name: 'Google',
        issuer: forge.issuer,
        emailTrust: 'google',
        clientId: OIDC_CLIENT.clientId,
        clientSecret: OIDC_CLIENT.clientSecret,
      },
      {
        oidc: createOidcClient({ fetch: boundedFetch, allowHttp: true }),
        redirectUri: `${CALLBACK}/google/callback`,
      },
    );
    const secrets = createOauthSecrets();
    prepare(forge, secrets, claims);
    const parameters = new URLSearchParams({ code: 'x', state: secrets.state });
    expect(await client.readAnswer(parameters, secrets)).toMatchObject({ isEmailVerified: isVerified });
  });
});

describe('a provider', () => {
  /** The configured ones keep their metadata. */
  const createClient = () =>
    createOpenIdClient(
      {
        kind: 'oidc',
        id: 'forge',
        name: 'Forge',
        issuer: forge.issuer,
        emailTrust: 'verified',
        ...OIDC_CLIENT,
      },
      {
        oidc: createOidcClient({ fetch: boundedFetch, allowHttp: true }),
        redirectUri: `${CALLBACK}/forge/callback`,
      },
    );
  afterEach(() => {
    forge.state.metadata = {};
  });

  test.each(CLIENT_AUTHENTICATIONS)('that takes secrets by %j gets it in the %s', async (methods, place) => {
    forge.state.metadata = { token_endpoint_auth_methods_supported: methods };
    const secrets = createOauthSecrets();
    prepare(forge, secrets);
    await createClient().readAnswer(new URLSearchParams({ code: 'x', state: secrets.state }), secrets);
    expectClientAuthentication(
      forge.state.requests.findLast(({ path }) => path === '/token'),
      place,
    );
  });

  test.each([
    ['another issuer in its metadata', { issuer: 'https://login.example' }],
    ['a script as authorization endpoint', { authorization_endpoint: 'javascript:alert(1)' }],
    ['no authorization endpoint', { authorization_endpoint: undefined }],
  ])('is refused for %s', async (_case, metadata) => {
    forge.state.metadata = metadata;
    await expect(createClient().authorizationUrl(createOauthSecrets())).rejects.toThrow(
      'check of the provider',
    );
  });
});

describe('starting', () => {
  test('redirects a browser, and lists the providers for its buttons', async () => {
    const response = await app.call('/auth/oauth/forge', { headers: { ...newNetwork(), ...BROWSER } });
    expect(response.statusCode).toBe(302);
    expect(response.headers.location).toContain(`${forge.issuer}/authorize?`);
    expect((await app.call('/auth/oauth-providers')).json()).toEqual({
      data: [
        { provider: 'github', name: 'GitHub' },
        { provider: 'real', name: 'REAL' },
        { provider: 'forge', name: 'FORGE' },
        { provider: 'other', name: 'OTHER' },
      ].map((provider) => ({ object: 'oauth_provider', ...provider })),
    });
  });

  test('with an unknown provider is a 404', async () => {
    for (const path of ['/auth/oauth/nobody', '/auth/oauth/nobody/callback'])
      expectProblem(await app.call(path, { headers: { ...newNetwork(), ...JSON_ONLY } }), 'not_found');
  });

  test.each([
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    '/api/v1/org',
    'javascript:alert(1)',
  ])('continues at the account page instead of %s', async (target) => {
    const started = await start('forge', `?${new URLSearchParams({ redirect_to: target })}`);
    prepare(forge, started, { sub: newSubject() });
    expect((await comeBack(started, {}, BROWSER)).headers.location).toBe('/account');
  });
});

describe('a sign-in with a linked provider', () => {
  async function createLinked(): Promise<{ email: string; userId: string; subject: string; token: string }> {
    const account = await createAccountQuickly(app);
    const subject = newSubject();
    const started = await startLink('other', account.token);
    prepare(other, started, { sub: subject, email: newAddress() });
    expect((await comeBack(started)).json()).toEqual({
      object: 'oauth_linked',
      linked: true,
      provider: 'other',
    });
    return { ...account, subject };
  }

  test('finds the person by their subject, whatever the address', async () => {
    const { userId, subject, email, token } = await createLinked();
    const answer = await signInWith(other, 'other', { sub: subject, email: 'moved@elsewhere.example' });
    expect(answer.json().user).toMatchObject({ id: userId, email });
    expect(await templates(email)).toContain('oauth-linked');
    expect(await auditActions(userId)).toContain('user.oauth_linked');
    expect((await app.call('/user/me/oauth-providers', { token })).json()).toMatchObject({
      data: [{ provider: 'other', name: 'OTHER', email: 'moved@elsewhere.example' }],
    });
  });

  test('asks for the second factor', async () => {
    const { userId, subject } = await createLinked();
    await query(
      app.worker,
      sql`insert into mfa_enrollments (id, user_id, type, name, confirmed_at, created_at)
      values (${`mfa_${userId}`}, ${userId}, 'totp', 'Phone', now(), now())`,
    );
    const answer = (await signInWith(other, 'other', { sub: subject })).json();
    expect(answer).toMatchObject({ mfa_required: true, methods: ['totp', 'recovery_code'] });
    const page = await signInWith(other, 'other', { sub: subject }, BROWSER);
    expect(page.headers.location).toBe('/login/mfa?next=%2Faccount');
  });

  test.each([
    ['suspended', 'invalid_credentials', sql`status = 'suspended'`],
    ['deleted', 'account_deleted', sql`deleted_at = now()`],
    ['purged', 'invalid_credentials', sql`deleted_at = now() - interval '30 days'`],
  ] as const)('is refused to a %s person', async (_case, code, change) => {
    const { userId, subject } = await createLinked();
    await query(app.worker, sql`update users set ${change} where id = ${userId}`);
    expectProblem(await signInWith(other, 'other', { sub: subject }), code);
  });

  test('ends with the link', async () => {
    const { userId, subject, token, email } = await createLinked();
    const unlinked = await app.call('/user/me/oauth-providers/other', { method: 'DELETE', token });
    expect(unlinked.statusCode).toBe(204);
    expectProblem(await signInWith(other, 'other', { sub: subject }), 'unprocessable');
    expect(await templates(email)).toContain('oauth-unlinked');
    expect(await auditActions(userId)).toContain('user.oauth_unlinked');
    expectProblem(await app.call('/user/me/oauth-providers/other', { method: 'DELETE', token }), 'not_found');
  });
});

describe('a link', () => {
  test('needs a recent sign-in, and so does its end', async () => {
    const { userId, token } = await createAccountQuickly(app);
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '11 minutes' where user_id = ${userId}`,
    );
    const link = { method: 'POST', token, body: {} } as const;
    expectProblem(await app.call('/user/me/oauth-providers/forge/link', link), 'session_expired');
    const unlink = { method: 'DELETE', token } as const;
    expectProblem(await app.call('/user/me/oauth-providers/forge', unlink), 'session_expired');
  });

  test('is not made in another browser, or after the session has ended', async () => {
    const { token } = await createAccountQuickly(app);
    const victim = await start('forge');
    const planted = await startLink('forge', token);
    prepare(forge, planted, { sub: newSubject() });
    // An attacker sends the victim the callback of their own link, or the reverse.
    expectProblem(await comeBack({ ...planted, cookie: victim.cookie }), 'oauth_failed');
    await app.call('/auth/logout', { method: 'POST', token });
    expectProblem(await comeBack(planted), 'oauth_failed');
  });

  test('does not take an identity from another person, nor replace the person’s own', async () => {
    const [first, second] = [await createAccountQuickly(app), await createAccountQuickly(app)];
    const subject = newSubject();
    const link = async (token: string, sub: string) => {
      const started = await startLink('forge', token);
      prepare(forge, started, { sub });
      return comeBack(started);
    };
    expect((await link(first.token, subject)).statusCode).toBe(200);
    expect((await link(first.token, subject)).statusCode).toBe(200);
    expectProblem(await link(second.token, subject), 'already_exists');
    expectProblem(await link(first.token, newSubject()), 'conflict');
    expect((await signInWith(forge, 'forge', { sub: subject })).json().user.id).toBe(first.userId);
  });

  test('is one of two concurrent ones with the same identity', async () => {
    const accounts = [await createAccountQuickly(app), await createAccountQuickly(app)];
    const id = randomBytes(4).readUInt32BE();
    prepareGithub({ id });
    const started = await Promise.all(accounts.map(({ token }) => startLink('github', token)));
    const statuses = (await Promise.all(started.map((one) => comeBack(one)))).map(
      ({ statusCode }) => statusCode,
    );
    expect(statuses.sort()).toEqual([200, 409]);
  });

  test('in a browser goes on to the page', async () => {
    const { token } = await createAccountQuickly(app);
    const started = await startLink('forge', token, { redirect_to: '/account?notice=provider-linked' });
    prepare(forge, started, { sub: newSubject() });
    const response = await comeBack(started, {}, BROWSER);
    expect([response.statusCode, response.headers.location]).toEqual([
      303,
      '/account?notice=provider-linked',
    ]);
  });

  test('cannot be removed if it is the last way in', async () => {
    const { token, user } = (await signInWith(forge, 'forge', { sub: newSubject() })).json();
    const unlink = (session = token) =>
      app.call('/user/me/oauth-providers/forge', { method: 'DELETE', token: session });
    expectProblem(await unlink(), 'conflict');
    const change = { method: 'POST', token, body: { new_password: PASSWORD } } as const;
    expect((await app.call('/user/me/change-password', change)).statusCode).toBe(204);
    expect((await unlink()).statusCode).toBe(204);
    expect((await signIn(app, user.email)).statusCode).toBe(200);
  });

  test('holds back the removal of the last passkey of a person without a password', async () => {
    const { user } = (await signInWith(forge, 'forge', { sub: newSubject() })).json();
    const { token } = await createTestSession(app.worker, user.id);
    const passkeyId = `mfa_${user.id}`;
    await query(
      app.worker,
      sql`insert into mfa_enrollments (id, user_id, type, name, credential_id, rp_id, confirmed_at, created_at)
      values (${passkeyId}, ${user.id}, 'webauthn', 'Key', ${randomBytes(16)}, 'localhost', now(), now())`,
    );
    await query(app.worker, sql`delete from oauth_identities where user_id = ${user.id}`);
    expectProblem(await app.call(`/auth/mfa/${passkeyId}`, { method: 'DELETE', token }), 'conflict');
  });
});
