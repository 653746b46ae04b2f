import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createAccountQuickly, PASSWORD } from '../support/accounts.ts';
import { OIDC_CLIENT, signInAtOidcProvider, startOidcProvider } from '../support/identity-providers.ts';
import { createPageClient, type PageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createSamlKey, idpMetadata } from '../support/saml-idp.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import {
  activateUntested,
  createConfiguration,
  createSsoOrganization,
  SSO_TEST_CONFIG,
  type SsoOrganization,
} from '../support/sso.ts';
import { useResource } from '../support/use-resource.ts';

const app = useTestApp({ config: SSO_TEST_CONFIG });
const provider = useResource(
  () => startOidcProvider(`${app.config.PUBLIC_URL}/api/v1/auth/sso/oidc/callback`),
  (started) => started.close(),
);

let organization: SsoOrganization;
let owner: PageClient;
let path: string;
beforeEach(async () => {
  organization = await createSsoOrganization(app);
  owner = createPageClient(app);
  owner.cookies.set('session', organization.ownerSession);
  path = `/settings/single-sign-on?org=${organization.organizationId}`;
});

const action = (name: string) => `/settings/single-sign-on/${name}`;

/** Opens the link of the page that sends a browser to the identity provider, signs in there and comes back. */
async function signInAtProvider(browser: PageClient, html: string, login: string) {
  const [, link = ''] = /<meta http-equiv="refresh" content="0; url=([^"]+)">/.exec(html) ?? [];
  const back = await signInAtOidcProvider(link.replaceAll('&amp;', '&'), login);
  return browser.open(`${back.pathname}${back.search}`);
}

async function setUp() {
  await owner.open(path);
  await owner.submit(action('oidc'), {
    name: 'Acme Identity',
    issuer: provider.issuer,
    client_id: OIDC_CLIENT.clientId,
    client_secret: OIDC_CLIENT.clientSecret,
    domains: organization.domain,
    default_role: 'viewer',
  });
  const leaving = await owner.submit(action('test'));
  const tested = await signInAtProvider(owner, leaving.body, `tester@${organization.domain}`);
  expect(tested.body).toContain('The test passed');
  const page = await owner.open(path);
  expect(page.body).toContain('test, passed');
  const activated = await owner.submit(action('activate'));
  expect(activated.body).toMatch(/<small>OIDC<\/small> <span class="badge good">active</);
}

async function signIn(browser: PageClient, login: string) {
  await browser.open('/login/sso');
  const leaving = await browser.submit('/login/sso', { organization: organization.organizationId });
  return signInAtProvider(browser, leaving.body, login);
}

describe('single sign-on by pages', () => {
  test('is set up, tested and activated, and signs members in', async () => {
    await setUp();
    const browser = createPageClient(app);
    await signIn(browser, `grace@${organization.domain}`);
    expect(browser.path).toBe('/overview');
    const page = await browser.open('/settings');
    expect(page.statusCode).toBe(200);
    expect(page.body).not.toContain('<form method="post" action="/settings">');
  });

  test('is linked with an existing account after a sign-in to it', async () => {
    await setUp();
    const email = `ada@${organization.domain}`;
    const account = await createAccountQuickly(app);
    await query(app.worker, sql`update users set email = ${email} where id = ${account.userId}`);
    const browser = createPageClient(app);
    const login = await signIn(browser, email);
    expect(login.body).toContain('An account has your address');
    await browser.submit('/login', { email, password: PASSWORD });
    expect(browser.path).toBe('/login/link');
    await browser.submit('/login/link');
    // The person has an organization of their own, too.
    expect(browser.path).toBe('/organizations?next=%2Foverview');
    const again = createPageClient(app);
    const linked = await signIn(again, email);
    expect(linked.body).toContain('Choose an organization');
    expect((await again.open('/account')).body).toContain(`<strong dir="auto">${email}</strong>`);
  });

  test('by SAML is set up from metadata, and shows what the identity provider has to know', async () => {
    const fields = {
      name: 'Acme SAML',
      idp_metadata_url: '',
      idp_metadata_xml: idpMetadata([await createSamlKey()]),
      domains: organization.domain,
      default_role: 'viewer',
      allow_idp_initiated: 'on',
    };
    await owner.open(path);
    const created = await owner.submit(action('saml'), fields);
    expect(created.body).toMatch(/<small>SAML<\/small> <span class="badge neutral">draft</);
    expect(created.body).toMatch(/\/api\/v1\/auth\/sso\/saml\/sso_\w+\/acs/);
    const refused = await owner.submit(action('saml'), { ...fields, idp_metadata_xml: '<a/>' });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('describes no SAML 2.0 identity provider');
  });

  test('finds the organization by the address, on the page of the password, too', async () => {
    await setUp();
    const email = `grace@${organization.domain}`;
    for (const [page, fields] of [
      ['/login/sso', { organization: email }],
      ['/login', { email, password: '' }],
    ] as const) {
      const browser = createPageClient(app);
      const opened = await browser.open(page);
      expect(opened.body).toContain('/login/sso');
      const [, csrf = ''] = /name="csrf" value="([^"]*)"/.exec(opened.body) ?? [];
      const leaving = await browser.post('/login/sso', { ...fields, csrf, next: '/account' });
      expect(leaving.body).toContain(`url=${provider.issuer}`);
      await signInAtProvider(browser, leaving.body, email);
      expect(browser.path).toBe('/account');
    }
  });

  test('is edited, and its pending changes are discarded', async () => {
    await setUp();
    await owner.open(path);
    const fields = {
      name: 'Renamed',
      issuer: provider.issuer,
      client_id: OIDC_CLIENT.clientId,
      client_secret: '',
    };
    const renamed = await owner.submit(action('oidc/change'), { ...fields, domains: organization.domain });
    expect(renamed.body).toContain('Renamed');
    expect(renamed.body).not.toContain('Pending changes');
    const pending = await owner.submit(action('oidc/change'), {
      ...fields,
      client_id: 'next',
      domains: organization.domain,
    });
    expect(pending.body).toContain('<strong>Pending changes</strong>');
    expect(pending.body).toMatch(/<small>OIDC<\/small> <span class="badge good">active</);
    const discarded = await owner.submit(action('discard'));
    expect(discarded.body).not.toContain('<strong>Pending changes</strong>');
    expect((await owner.submit(action('refresh'))).statusCode).toBe(200);
    expect((await owner.submit(action('refresh'))).statusCode).toBe(429);
  });

  test('shows when certificates end, and asks people once to confirm through the former configuration', async () => {
    await setUp();
    const member = createPageClient(app);
    await signIn(member, `grace@${organization.domain}`);
    const saml = await createConfiguration(app, organization.token, {
      type: 'saml',
      name: 'Next',
      idp_metadata_xml: idpMetadata([await createSamlKey()]),
      domains: [organization.domain],
    });
    await activateUntested(app, organization.token, saml);
    const page = await owner.open(path);
    expect(page.body).toMatch(/Its last certificate ends <local-time><time datetime="\d{4}-/);
    expect(page.body).toContain('<strong>1</strong> member has not linked yet');
    const stranger = createPageClient(app);
    await stranger.open('/login/former');
    expect(stranger.path).toBe('/login/sso');
  });

  test('is enforced only by those who would stay in', async () => {
    await setUp();
    const refused = await owner.submit(action('policy'), { enforce_sso: 'on', sso_satisfies_mfa: 'on' });
    expect(refused.statusCode).toBe(409);
    expect(refused.body).toContain('role="alert"');
    await owner.submit(action('policy'), {});
    const policies = await app.call('/org/policies', { token: organization.token });
    expect(policies.json()).toMatchObject({ enforce_sso: false, sso_satisfies_mfa: false });
  });

  test('names what is wrong', async () => {
    const browser = createPageClient(app);
    await browser.open('/login/sso');
    const unknown = await browser.submit('/login/sso', { organization: 'no-such-organization' });
    expect(unknown.statusCode).toBe(404);
    expect(unknown.body).toContain('role="alert"');
    await owner.open(path);
    const refused = await owner.submit(action('oidc'), {
      name: 'Acme Identity',
      issuer: 'not a URL',
      client_id: 'x',
      client_secret: 'x',
      domains: organization.domain,
      default_role: 'viewer',
    });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('id="settings-single-sign-on-oidc-field-issuer-error">');
    await browser.open('/login/link');
    expect(browser.path).toMatch(/^\/login\?next=/);
  });

  test('is managed by owners and administrators alone', async () => {
    const developerId = await createTestUser(app.worker, {
      organizationId: organization.organizationId,
      role: 'developer',
    });
    const developer = createPageClient(app);
    developer.cookies.set('session', (await createTestSession(app.worker, developerId)).token);
    expect((await developer.open(path)).statusCode).toBe(403);
  });
});
