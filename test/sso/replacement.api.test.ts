import { inflateRawSync } from 'node:zlib';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { OIDC_CLIENT, startForgingProvider } from '../support/identity-providers.ts';
import { expectProblem } from '../support/problems.ts';
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
const forger = useResource(startForgingProvider, (started) => started.close());
let keys: SamlKey[];
beforeAll(async () => {
  keys = await Promise.all([createSamlKey(), createSamlKey()]);
});
let organization: SsoOrganization;
beforeEach(async () => {
  forger.state.metadata = {};
  forger.state.override = {};
  organization = await createSsoOrganization(app);
});

const address = (name = 'grace') => `${name}@${organization.domain}`;
const keyAt = (index: number) => keys[index] as SamlKey;

async function useOidc(): Promise<string> {
  const settings = oidcSettings(forger.issuer, organization.domain);
  const id = await createConfiguration(app, organization.token, settings);
  await activateUntested(app, organization.token, id);
  return id;
}

async function useSaml(by: number[], change: object = {}): Promise<string> {
  const id = await createConfiguration(app, organization.token, {
    type: 'saml',
    name: 'The new one',
    idp_metadata_xml: idpMetadata(by.map(keyAt)),
    domains: [organization.domain],
    ...change,
  });
  await activateUntested(app, organization.token, id);
  return id;
}

async function finishOidc(browser: Browser, url: URL, { subject = 'one', email = address() } = {}) {
  const { state = '', nonce = '' } = Object.fromEntries(url.searchParams);
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: forger.issuer,
    aud: OIDC_CLIENT.clientId,
    sub: subject,
    nonce,
    iat: now,
    exp: now + 300,
    email,
  };
  forger.state.token = { claims };
  const query = new URLSearchParams({ code: 'code', state });
  return browser.call(`/auth/sso/oidc/callback?${query}`, { headers: JSON_ONLY });
}

async function signInByOidc(person: { subject?: string; email?: string } = {}) {
  const browser = new Browser(app);
  return finishOidc(browser, await browser.start(organization.organizationId), person);
}

async function signInBySaml({
  by = 0,
  browser = new Browser(app),
  ...answer
}: Partial<SamlAnswer> & { by?: number; browser?: Browser } = {}) {
  const url = await browser.start(organization.organizationId);
  const request = inflateRawSync(Buffer.from(url.searchParams.get('SAMLRequest') ?? '', 'base64')).toString();
  const [, inResponseTo = ''] = / ID="([^"]+)"/.exec(request) ?? [];
  const [, audience = ''] = /<saml:Issuer[^>]*>([^<]+)</.exec(request) ?? [];
  const [, acsUrl = ''] = / AssertionConsumerServiceURL="([^"]+)"/.exec(request) ?? [];
  const filled = samlAnswer({ acsUrl, audience, email: address(), inResponseTo, ...answer });
  return browser.call(new URL(acsUrl).pathname, {
    prefix: '',
    method: 'POST',
    raw: new URLSearchParams({
      SAMLResponse: encodeSaml(signXml(responseXml(filled), 'Assertion', keyAt(by))),
      RelayState: url.searchParams.get('RelayState') ?? '',
    }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...JSON_ONLY },
  });
}

const remove = (id: string) => app.call(`/org/sso/${id}`, { method: 'DELETE', token: organization.token });
const list = async () => (await app.call('/org/sso', { token: organization.token })).json().data;
const countUsers = async () =>
  (await query(app.worker, sql`select from users where email like ${`%@${organization.domain}`}`)).length;

describe('people without a password stay known', () => {
  test.each(['replaced', 'deleted and created again'])('when OIDC of the same issuer is %s', async (how) => {
    const former = await useOidc();
    const { user } = (await signInByOidc()).json();
    if (how !== 'replaced') expect((await remove(former)).statusCode).toBe(204);
    await useOidc();
    // With another address, too: it makes no second account.
    expect((await signInByOidc({ email: address('renamed') })).json().user.id).toBe(user.id);
    expect(await countUsers()).toBe(1);
    expect((await list()).every(({ unlinked_members: n }: { unlinked_members: unknown }) => n === null)).toBe(
      true,
    );
  });

  test.each(['replaced', 'deleted and created again'])(
    'when SAML with a certificate of the identity provider is %s',
    async (how) => {
      const former = await useSaml([0]);
      const { user } = (await signInBySaml()).json();
      if (how !== 'replaced') expect((await remove(former)).statusCode).toBe(204);
      await useSaml([0, 1]);
      expect((await signInBySaml({ by: 1, email: address('renamed') })).json().user.id).toBe(user.id);
      expect(await countUsers()).toBe(1);
    },
  );
});

test('SAML with the same entity id and another certificate recognizes no person, not by its address either', async () => {
  const former = await useSaml([0]);
  const { user } = (await signInBySaml()).json();
  const session = await createTestSession(app.worker, user.id);
  for (const how of ['a change', 'a configuration of its own']) {
    if (how === 'a change') {
      const body = { idp_metadata_xml: idpMetadata([keyAt(1)]) };
      await app.call(`/org/sso/${former}`, { method: 'PATCH', token: organization.token, body });
      await activateUntested(app, organization.token, former);
    } else await useSaml([1]);
    const problem = expectProblem(await signInBySaml({ by: 1 }), 'account_exists');
    expect(problem).toMatchObject({ link_token: expect.any(String) });
    expect(session.token).not.toBe(problem.link_token);
  }
  expect(await countUsers()).toBe(1);
});

describe('from OIDC to SAML', () => {
  let former: string;
  let userId: string;
  beforeEach(async () => {
    former = await useOidc();
    userId = (await signInByOidc()).json().user.id;
    await useSaml([0]);
  });

  const startFormer = async (browser: Browser, problem: Record<string, unknown>) => {
    const body = { link_token: problem.link_token, configuration_id: problem.former_configuration_id };
    return browser.call('/auth/sso/link/former', { method: 'POST', body });
  };

  test('the first login is confirmed by one through the former configuration, which is counted', async () => {
    const find = async () => (await list()).find(({ id }: { id: string }) => id === former);
    expect(await find()).toMatchObject({ status: 'disabled', unlinked_members: 1 });
    const browser = new Browser(app);
    const problem = expectProblem(await signInBySaml({ browser }), 'account_exists');
    expect(problem.former_configuration_id).toBe(former);
    expectProblem(await startFormer(new Browser(app), problem), 'sso_failed');
    const started = await startFormer(browser, problem);
    const linked = await finishOidc(browser, new URL(started.json().redirect_url));
    expect(linked.json()).toMatchObject({ token: expect.stringMatching(/^sst_/), user: { id: userId } });
    expect((await app.call('/org', { token: linked.json().token })).statusCode).toBe(200);
    expect((await signInBySaml()).json().user.id).toBe(userId);
    expect(await find()).toMatchObject({ unlinked_members: 0 });
  });

  test('an address that changed meanwhile makes no second account, unless the person says to be new', async () => {
    const browser = new Browser(app);
    const problem = expectProblem(
      await signInBySaml({ browser, email: address('renamed') }),
      'sso_link_required',
    );
    const started = await startFormer(browser, problem);
    const linked = await finishOidc(browser, new URL(started.json().redirect_url));
    expect(linked.json().user.id).toBe(userId);
    const hire = new Browser(app);
    // Everybody is linked by now, so that a new person gets an account at once.
    const joined = await signInBySaml({ browser: hire, nameId: 'person-2', email: address('hire') });
    expect(joined.json().user.email).toBe(address('hire'));
    expect(await countUsers()).toBe(2);
  });

  test('a new person joins while others are not linked, once', async () => {
    const browser = new Browser(app);
    const login = { browser, nameId: 'person-2', email: address('hire') };
    const { link_token } = expectProblem(await signInBySaml(login), 'sso_link_required');
    const join = (by: Browser) => by.call('/auth/sso/link/join', { method: 'POST', body: { link_token } });
    expectProblem(await join(new Browser(app)), 'sso_failed');
    const answers = await Promise.all([join(browser), join(browser)]);
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 401]);
    const existing = expectProblem(await signInBySaml({ browser }), 'account_exists');
    const refused = { method: 'POST', body: { link_token: existing.link_token } } as const;
    expectProblem(await browser.call('/auth/sso/link/join', refused), 'sso_failed');
  });

  test('a login through the former configuration links only what that person proved, and signs no one in', async () => {
    const stranger = new Browser(app);
    const problem = expectProblem(await signInBySaml({ browser: stranger }), 'account_exists');
    const started = await startFormer(stranger, problem);
    const url = new URL(started.json().redirect_url);
    const refused = await finishOidc(stranger, url, { subject: 'two', email: address('two') });
    expect(expectProblem(refused, 'sso_failed')).toMatchObject({ check: 'account' });
    expect((await readAttempts(app, organization.token, former))[0]).toMatchObject({ purpose: 'prove' });
    expect(await countUsers()).toBe(1);
  });

  test('the former configuration stops linking when it is disabled', async () => {
    const browser = new Browser(app);
    const problem = expectProblem(await signInBySaml({ browser }), 'account_exists');
    const path = `/org/sso/${former}`;
    const body = { disabled: true };
    const disabled = await app.call(path, { method: 'PATCH', token: organization.token, body });
    expect(disabled.json()).toMatchObject({ status: 'disabled', unlinked_members: null });
    expectProblem(await startFormer(browser, problem), 'not_found');
  });

  test('another organization does not get in by its own former configuration', async () => {
    const problem = expectProblem(await signInBySaml(), 'account_exists');
    const mine = organization;
    organization = await createSsoOrganization(app);
    const foreign = await useOidc();
    const browser = new Browser(app);
    const body = { link_token: problem.link_token, configuration_id: foreign };
    expectProblem(await browser.call('/auth/sso/link/former', { method: 'POST', body }), 'sso_failed');
    organization = mine;
  });
});

test('an administrator does not replace the identity provider that an owner signs in through', async () => {
  await useSaml([0]);
  await signInBySaml();
  await query(
    app.worker,
    sql`update members set role = 'owner' where org_id = ${organization.organizationId}`,
  );
  const adminId = await createTestUser(app.worker, { ...organization, role: 'admin' });
  const { token } = await createTestSession(app.worker, adminId);
  const copy = await createConfiguration(app, token, {
    type: 'saml',
    name: 'Copied',
    idp_metadata_xml: idpMetadata([keyAt(0), keyAt(1)]),
    domains: [organization.domain],
  });
  await query(
    app.worker,
    sql`update sso_configurations set status = 'tested', tested_at = now() where id = ${copy}`,
  );
  expectProblem(await app.call(`/org/sso/${copy}/activate`, { method: 'POST', token }), 'permission_denied');
});

describe('a login begins with an address', () => {
  test('of a verified domain', async () => {
    await useOidc();
    const url = await new Browser(app).start(
      encodeURIComponent(`Grace@${organization.domain.toUpperCase()}`),
    );
    expect(url.searchParams.get('login_hint')).toBe(`Grace@${organization.domain.toUpperCase()}`);
  });

  test('of no other domain', async () => {
    await useOidc();
    expectProblem(await new Browser(app).call('/auth/sso/grace%40other.example.com'), 'not_found');
    await query(
      app.worker,
      sql`update domains set verification_status = 'failed' where org_id = ${organization.organizationId}`,
    );
    expectProblem(await new Browser(app).call(`/auth/sso/${encodeURIComponent(address())}`), 'not_found');
  });
});

test.each([
  ['issued', { iat: 300 }],
  ['signed in', { auth_time: 300 }],
])('an ID token that says it was %s in the future is refused', async (_what, ahead) => {
  const id = await useOidc();
  const browser = new Browser(app);
  const url = await browser.start(organization.organizationId);
  const { state = '', nonce = '' } = Object.fromEntries(url.searchParams);
  const now = Math.floor(Date.now() / 1000);
  const later = Object.fromEntries(Object.entries(ahead).map(([name, seconds]) => [name, now + seconds]));
  forger.state.token = {
    claims: {
      iss: forger.issuer,
      aud: OIDC_CLIENT.clientId,
      sub: 'one',
      nonce,
      iat: now,
      exp: now + 900,
      email: address(),
      ...later,
    },
  };
  const answer = await browser.call(
    `/auth/sso/oidc/callback?${new URLSearchParams({ code: 'code', state })}`,
    {
      headers: JSON_ONLY,
    },
  );
  expect(expectProblem(answer, 'sso_failed')).toMatchObject({ check: 'time' });
  expect((await readAttempts(app, organization.token, id))[0]?.checks.at(-1)?.seen).toMatch(
    /^(issued|signed in) 20/,
  );
});

test('the keys of an OpenID provider are read again when it signs with an unknown one, and the code is sent once', async () => {
  await useOidc();
  expect((await signInByOidc()).statusCode).toBe(200);
  forger.rotateKey();
  forger.state.requests = [];
  expect((await signInByOidc()).statusCode).toBe(200);
  const paths = forger.state.requests.map(({ path }) => path);
  expect(paths.filter((path) => path === '/token')).toHaveLength(1);
  expect(paths.filter((path) => path === '/jwks').length).toBeGreaterThan(0);
  // At most every half minute.
  forger.rotateKey();
  expect(expectProblem(await signInByOidc(), 'sso_failed')).toMatchObject({ check: 'signature' });
});

test('the metadata of a SAML identity provider is read again when it signs with an unknown key', async () => {
  const publish = (by: number) => {
    const body = idpMetadata([keyAt(by)]);
    forger.state.override = {
      '/metadata': { status: 200, headers: { 'content-type': 'application/xml' }, body },
    };
  };
  publish(0);
  const id = await useSaml([0], {
    idp_metadata_xml: undefined,
    idp_metadata_url: `${forger.issuer}/metadata`,
  });
  const { user } = (await signInBySaml()).json();
  publish(1);
  expect((await signInBySaml({ by: 1 })).json().user.id).toBe(user.id);
  forger.state.requests = [];
  // A forged one does not make the service ask at every attempt.
  expectProblem(await signInBySaml({ by: 0 }), 'sso_failed');
  expect(forger.state.requests).toEqual([]);
  const again = await app.call(`/org/sso/${id}/refresh`, { method: 'POST', token: organization.token });
  expectProblem(again, 'rate_limited');
  await query(app.worker, sql`update sso_configurations set keys_read_at = null where id = ${id}`);
  publish(0);
  const read = await app.call(`/org/sso/${id}/refresh`, { method: 'POST', token: organization.token });
  expect(read.json()).toMatchObject({ id, metadata_read_at: expect.any(String) });
  const log = await app.call('/org/audit-log?action=sso_configuration.refreshed', {
    token: organization.token,
  });
  expect(log.json().data).toMatchObject([{ resource: { id } }]);
  expect((await signInBySaml({ by: 0 })).json().user.id).toBe(user.id);
});
