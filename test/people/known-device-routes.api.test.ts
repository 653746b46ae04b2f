import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { LightMyRequestResponse } from 'fastify';
import { sql } from 'kysely';
import { listSourceFiles } from '../guards/import-graph.ts';
import { readAccountMail } from '../support/account-mail.ts';
import {
  createAccount,
  createAccountQuickly,
  newAddress,
  PASSWORD,
  type QuickAccount,
  signIn,
} from '../support/accounts.ts';
import { OIDC_CLIENT, startForgingProvider } from '../support/identity-providers.ts';
import { createPageClient, type PageClient } from '../support/page-client.ts';
import { setPolicies } from '../support/policies.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import {
  createSamlKey,
  encodeSaml,
  idpMetadata,
  responseXml,
  type SamlAnswer,
  type SamlKey,
  samlAnswer,
  signXml,
} from '../support/saml-idp.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { createSoftwareAuthenticator } from '../support/software-authenticator.ts';
import {
  activateUntested,
  Browser,
  createConfiguration,
  createSsoOrganization,
  JSON_ONLY,
  oidcSettings,
  SSO_TEST_CONFIG,
  type SsoOrganization,
} from '../support/sso.ts';
import { enrollTotp, totpCode } from '../support/totp.ts';
import { useResource } from '../support/use-resource.ts';

const provider = useResource(startForgingProvider, (started) => started.close());
const app = useTestApp(() => ({
  config: {
    ...SSO_TEST_CONFIG,
    OAUTH_OIDC_PROVIDERS: JSON.stringify([
      {
        id: 'forge',
        name: 'Forge',
        issuer: provider.issuer,
        client_id: OIDC_CLIENT.clientId,
        client_secret: OIDC_CLIENT.clientSecret,
        verifies_email: true,
      },
    ]),
  },
}));

interface Operation {
  operationId: string;
  method: string;
  path: RegExp;
}

const pathPattern = (path: string) => new RegExp(`^${path.replace(/\{\w+\}|:\w+/g, '[^/]+')}$`);

/** Operations whose response may be a session: by the API's description, and pages by their source. */
function findOperations(): Operation[] {
  const ofApi = app.contract.operations
    .filter(({ responses }) => /SessionCreated|VerifiedSignUp/.test(JSON.stringify(responses)))
    .map(({ operationId, method, path }) => ({ operationId, method, path: pathPattern(path) }));
  const ofPages = listSourceFiles(['web']).flatMap((file) =>
    readFileSync(resolve(import.meta.dirname, '../..', file), 'utf8')
      .split(/app\.(?=(?:get|post)\()|pages\.(?=form\(app, )/)
      .filter((part) => /browserSignIn\.finish\(|browserSession\.start\(/.test(part))
      .flatMap((part) => {
        const [, method = '', path = ''] = /^(\w+)\(\s*(?:app, )?'([^']+)'/.exec(part) ?? [];
        const [, operationId] = /operationId: '([\w.]+)'/.exec(part) ?? [];
        return operationId === undefined
          ? []
          : [{ operationId, method: method === 'get' ? 'GET' : 'POST', path: pathPattern(path) }];
      }),
  );
  return [...ofApi, ...ofPages];
}

interface Answer {
  operationId: string | undefined;
  /** A token or a cookie of a session. */
  hasSession: boolean;
  hasDevice: boolean;
}

interface Request {
  method?: string;
  url: string;
}

/** Of all requests, in order. */
const answers: Answer[] = [];
let operations: Operation[];
beforeAll(async () => {
  operations = findOperations();
  const inject = app.app.inject.bind(app.app) as (request: Request) => Promise<LightMyRequestResponse>;
  app.app.inject = (async (request: Request) => {
    const response = await inject(request);
    const has = (name: string) =>
      response.cookies.some((cookie) => cookie.name === name && cookie.value !== '');
    const { method = 'GET', url } = request;
    const path = url.split('?')[0] ?? url;
    answers.push({
      operationId: operations.find((one) => one.method === method && one.path.test(path))?.operationId,
      hasSession: has('session') || response.body.includes('"token":"sst_'),
      hasDevice: has('device'),
    });
    return response;
  }) as unknown as typeof app.app.inject;
  key = await createSamlKey();
});
beforeEach(async () => {
  organization = await createSsoOrganization(app);
});

let key: SamlKey;
let organization: SsoOrganization;
const address = (name = 'grace') => `${name}@${organization.domain}`;
const post = (path: string, body: object, token?: string) =>
  app.call(path, { method: 'POST', body, ...(token === undefined ? {} : { token }) });

/** Enrolls an authenticator app. Returns a code that is valid now. */
async function addTotp({ token }: Pick<QuickAccount, 'token'>): Promise<string> {
  const { secret } = await enrollTotp((path, body) => post(path, body, token));
  return totpCode(secret);
}

async function addPasskey({ token }: QuickAccount) {
  const authenticator = createSoftwareAuthenticator();
  const options = (await app.call('/auth/mfa/webauthn/register-options', { method: 'POST', token })).json();
  await post('/auth/mfa/webauthn/register', { response: authenticator.register(options) }, token);
  return authenticator;
}

const remove = ({ token }: QuickAccount) =>
  app.call('/user/me', { method: 'DELETE', token, body: { current_password: PASSWORD } });

async function invite(email: string): Promise<string> {
  await post('/org/invitations', { email, role: 'viewer' }, organization.ownerSession);
  return (await readAccountMail(app, email)).at(-1)?.token ?? '';
}

/** The parameters with which the provider sends a browser back. */
function comeBack(url: URL, email: string, sub = email): URLSearchParams {
  const { state = '', nonce = '' } = Object.fromEntries(url.searchParams);
  const iat = Math.floor(Date.now() / 1000);
  const claims = { iss: provider.issuer, aud: OIDC_CLIENT.clientId, sub, nonce, iat, exp: iat + 300, email };
  provider.state.token = { claims: { ...claims, email_verified: true } };
  return new URLSearchParams({ code: 'code', state });
}

async function signInByOauth(email: string, headers: Record<string, string>, sub?: string) {
  const browser = new Browser(app);
  const started = await browser.call('/auth/oauth/forge', { headers: JSON_ONLY });
  const query = comeBack(new URL(started.json().redirect_url), email, sub);
  return browser.call(`/auth/oauth/forge/callback?${query}`, { headers });
}

async function useOidc(): Promise<void> {
  const settings = oidcSettings(provider.issuer, organization.domain);
  await activateUntested(
    app,
    organization.token,
    await createConfiguration(app, organization.token, settings),
  );
}

async function signInByOidc(email = address(), headers = JSON_ONLY as Record<string, string>) {
  const browser = new Browser(app);
  const query = comeBack(await browser.start(organization.organizationId), email);
  return { browser, answer: await browser.call(`/auth/sso/oidc/callback?${query}`, { headers }) };
}

/** Returns the ACS URL and the audience of a new active configuration. */
async function useSaml(change: object = {}) {
  const body = {
    type: 'saml',
    name: 'Test provider',
    idp_metadata_xml: idpMetadata([key]),
    domains: [organization.domain],
    ...change,
  };
  const created = (await post('/org/sso', body, organization.token)).json();
  await activateUntested(app, organization.token, created.id);
  return { acsUrl: created.acs_url as string, audience: created.sp_entity_id as string };
}

const postForm = (browser: Browser, path: string, fields: Record<string, string>, headers = {}) =>
  browser.call(path, {
    prefix: '',
    method: 'POST',
    raw: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  });

async function signInBySaml(
  change: Partial<SamlAnswer> = {},
  { path, headers = JSON_ONLY }: { path?: string; headers?: Record<string, string> } = {},
) {
  const browser = new Browser(app);
  const url = await browser.start(organization.organizationId);
  const request = inflateRawSync(Buffer.from(url.searchParams.get('SAMLRequest') ?? '', 'base64')).toString();
  const [, inResponseTo = ''] = / ID="([^"]+)"/.exec(request) ?? [];
  const [, audience = ''] = /<saml:Issuer[^>]*>([^<]+)</.exec(request) ?? [];
  const [, acsUrl = ''] = / AssertionConsumerServiceURL="([^"]+)"/.exec(request) ?? [];
  const filled = samlAnswer({ acsUrl, audience, email: address(), inResponseTo, ...change });
  const xml = signXml(responseXml(filled), 'Assertion', key);
  const fields = { SAMLResponse: encodeSaml(xml), RelayState: url.searchParams.get('RelayState') ?? '' };
  return { browser, answer: await postForm(browser, path ?? new URL(acsUrl).pathname, fields, headers) };
}

/** A person whom the former configuration does not know waits for an answer. */
async function startAsNewPerson(headers?: Record<string, string>) {
  await useOidc();
  await signInByOidc();
  await useSaml();
  const person = { nameId: 'person-2', email: address('hire') };
  return signInBySaml(person, headers === undefined ? {} : { headers });
}

/** A person waits with an address that has an account. */
async function startWithKnownAddress(headers?: Record<string, string>) {
  await useOidc();
  const userId = await createTestUser(app.worker, { email: address() });
  const { token } = await createTestSession(app.worker, userId);
  return { token, ...(await signInByOidc(address(), headers)) };
}

/** The same browser, for pages. */
function toPages({ cookies }: Browser, session?: string): PageClient {
  const client = createPageClient(app);
  for (const [name, value] of cookies) client.cookies.set(name, value);
  if (session !== undefined) client.cookies.set('session', session);
  return client;
}

async function submitLogin(email: string): Promise<PageClient> {
  const browser = createPageClient(app);
  await browser.open('/login');
  await browser.submit('/login', { email, password: PASSWORD });
  return browser;
}

async function submitRecover(email: string): Promise<void> {
  const browser = createPageClient(app);
  await browser.open('/recover');
  await browser.submit('/recover', { email, password: PASSWORD });
}

const signUp = () => {
  const email = newAddress();
  const fields = { email, password: PASSWORD, name: 'Ada Lovelace', organization_name: 'Engines' };
  return { email, fields };
};

const HTML = { accept: 'text/html' };
/** Ways to a session, by the operation that answers with it. */
const WAYS: [operationId: string, signIn: () => Promise<unknown>][] = [
  ['auth.signIn', async () => signIn(app, (await createAccountQuickly(app)).email)],
  [
    'auth.completeMfa',
    async () => {
      const account = await createAccountQuickly(app);
      const code = await addTotp(account);
      const { mfa_token } = (await signIn(app, account.email)).json();
      await post('/auth/mfa/challenge', { mfa_token, method: 'totp', code });
    },
  ],
  ['auth.verifyEmail', () => createAccount(app)],
  [
    'auth.signInByPasskey',
    async () => {
      const authenticator = await addPasskey(await createAccountQuickly(app));
      const options = (await post('/auth/mfa/webauthn/auth-options', {})).json();
      await post('/auth/login/passkey', { response: authenticator.authenticate(options) });
    },
  ],
  [
    'user.recover',
    async () => {
      const account = await createAccountQuickly(app);
      await remove(account);
      await post('/user/me/recover', { email: account.email, password: PASSWORD });
    },
  ],
  [
    'invitations.accept',
    async () =>
      post('/invitations/accept', { token: await invite(newAddress()), name: 'Grace', password: PASSWORD }),
  ],
  ['oauth.finish', () => signInByOauth(newAddress(), JSON_ONLY)],
  ['oauth.finish', () => signInByOauth(newAddress(), HTML)],
  ['sso.finishOidc', () => useOidc().then(() => signInByOidc())],
  ['sso.finishOidc', () => useOidc().then(() => signInByOidc(address(), HTML))],
  [
    'sso.postOidc',
    async () => {
      await useOidc();
      const browser = new Browser(app);
      const fields = Object.fromEntries(
        comeBack(await browser.start(organization.organizationId), address()),
      );
      await postForm(browser, '/api/v1/auth/sso/oidc/callback', fields, JSON_ONLY);
    },
  ],
  ['sso.finishSamlOfConfiguration', () => useSaml().then(() => signInBySaml())],
  ['sso.finishSamlOfConfiguration', () => useSaml().then(() => signInBySaml({}, { headers: HTML }))],
  [
    'sso.finishSaml',
    async () => {
      await useSaml();
      const acsUrl = `${app.config.PUBLIC_URL}/api/v1/auth/sso/saml/callback`;
      await signInBySaml({ acsUrl }, { path: new URL(acsUrl).pathname });
    },
  ],
  [
    'sso.confirm',
    async () => {
      const service = await useSaml({ allow_idp_initiated: true });
      const xml = responseXml(samlAnswer({ ...service, email: address() }));
      const fields = { SAMLResponse: encodeSaml(signXml(xml, 'Assertion', key)) };
      const browser = new Browser(app);
      const asked = await postForm(browser, new URL(service.acsUrl).pathname, fields, JSON_ONLY);
      const { confirm_token } = asked.json();
      await postForm(browser, '/api/v1/auth/sso/saml/confirm', { confirm_token }, JSON_ONLY);
    },
  ],
  [
    'sso.link',
    async () => {
      const { token, browser, answer } = await startWithKnownAddress();
      const body = { link_token: answer.json().link_token };
      await browser.call('/auth/sso/link', { method: 'POST', token, body });
    },
  ],
  [
    'sso.join',
    async () => {
      const { browser, answer } = await startAsNewPerson();
      const body = { link_token: answer.json().link_token };
      await browser.call('/auth/sso/link/join', { method: 'POST', body });
    },
  ],
  ['pages.submitLogin', async () => submitLogin((await createAccountQuickly(app)).email)],
  [
    'pages.submitMfa',
    async () => {
      const account = await createAccountQuickly(app);
      const code = await addTotp(account);
      await (await submitLogin(account.email)).submit('/login/mfa', { method: 'totp', code });
    },
  ],
  [
    'pages.submitPasskey',
    async () => {
      const authenticator = await addPasskey(await createAccountQuickly(app));
      const browser = createPageClient(app);
      const { body } = await browser.open('/login');
      const [, csrf = ''] = /name="csrf" value="([^"]*)"/.exec(body) ?? [];
      const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const headers = { 'x-csrf-token': csrf, cookie };
      const options = await app.call('/login/passkey/options', {
        prefix: '',
        method: 'POST',
        headers,
        body: {},
      });
      const response = JSON.stringify(authenticator.authenticate(options.json()));
      await browser.post('/login/passkey', { csrf, response, next: '/account' });
    },
  ],
  [
    'pages.submitVerifyEmail',
    async () => {
      const { email, fields } = signUp();
      await post('/auth/signup', fields);
      const browser = createPageClient(app);
      await browser.open(`/verify-email?token=${(await readAccountMail(app, email)).at(-1)?.token}`);
      await browser.submit('/verify-email', { password: PASSWORD });
    },
  ],
  [
    'pages.submitRecover',
    async () => {
      const account = await createAccountQuickly(app);
      await remove(account);
      await submitRecover(account.email);
    },
  ],
  [
    'pages.acceptInvitation',
    async () => {
      const browser = createPageClient(app);
      await browser.open(`/invitations/accept?token=${await invite(newAddress())}`);
      await browser.submit('/invitations/accept', { name: 'Grace', password: PASSWORD });
    },
  ],
  [
    'pages.linkSso',
    async () => {
      const { token, browser } = await startWithKnownAddress(HTML);
      const page = toPages(browser, token);
      await page.open('/login/link');
      await page.submit('/login/link');
    },
  ],
  [
    'pages.joinBySso',
    async () => {
      const page = toPages((await startAsNewPerson(HTML)).browser);
      await page.open('/login/former');
      await page.submit('/login/former/join');
    },
  ],
];

/** Runs requests. Returns the answers to them. */
async function observe(run: () => Promise<unknown>): Promise<Answer[]> {
  const before = answers.length;
  await run();
  return answers.slice(before);
}

describe('the cookie of a known device', () => {
  test.each(WAYS)('comes with the session of %s, and not before', async (operationId, act) => {
    const seen = await observe(act);
    expect(seen.filter(({ hasSession, hasDevice }) => hasSession !== hasDevice)).toEqual([]);
    expect(seen.filter(({ hasSession }) => hasSession).at(-1)?.operationId).toBe(operationId);
  });

  test('is tested for every operation that answers with a session', () => {
    expect(operations.length).toBeGreaterThan(20);
    const tested = new Set(WAYS.map(([operationId]) => operationId));
    expect([...tested].sort()).toEqual([...new Set(operations.map((one) => one.operationId))].sort());
  });

  const PARTIAL: [string, (account: QuickAccount) => Promise<unknown>][] = [
    ['a password', ({ email }) => signIn(app, email)],
    ['a password on a page', ({ email }) => submitLogin(email)],
    [
      'a recovery',
      (account) =>
        remove(account).then(() => post('/user/me/recover', { email: account.email, password: PASSWORD })),
    ],
    ['a recovery on a page', (account) => remove(account).then(() => submitRecover(account.email))],
    ['a provider', ({ email }) => signInByOauth(email, JSON_ONLY, email)],
    ['a provider on a page', ({ email }) => signInByOauth(email, HTML, email)],
  ];
  test.each(PARTIAL)('does not come after %s while the second factor is missing', async (_what, act) => {
    const account = await createAccountQuickly(app);
    await query(
      app.worker,
      sql`insert into oauth_identities (provider, issuer, subject, user_id, email, last_used_at, created_at)
      values ('forge', ${provider.issuer}, ${account.email}, ${account.userId}, ${account.email}, now(), now())
      returning user_id`,
    );
    await addTotp(account);
    const seen = await observe(() => act(account));
    expect(seen.some(({ operationId }) => operationId !== undefined)).toBe(true);
    expect(seen.filter(({ hasSession, hasDevice }) => hasSession || hasDevice)).toEqual([]);
  });

  test.each([
    ['the API', ({ email }: QuickAccount) => signIn(app, email)],
    ['a page', ({ email }: QuickAccount) => submitLogin(email)],
  ])('does not come with a session that can only enroll a second factor, by %s', async (_where, act) => {
    const account = await createAccountQuickly(app);
    await setPolicies(app.worker, account.organizationId, { require_mfa: true });
    const seen = (await observe(() => act(account))).filter(({ hasSession }) => hasSession);
    expect(seen).toMatchObject([{ hasSession: true, hasDevice: false }]);
  });
});
