import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import { purgeSsoSetupLinks } from '../../domain/sso/sso-purges.ts';
import { readAccountMail } from '../support/account-mail.ts';
import { newAddress } from '../support/accounts.ts';
import { OIDC_CLIENT, signInAtOidcProvider, startOidcProvider } from '../support/identity-providers.ts';
import { createKey, createOrganization } from '../support/organizations.ts';
import { createPageClient, type PageClient } from '../support/page-client.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createSamlKey, idpMetadata } from '../support/saml-idp.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import {
  activateUntested,
  createConfiguration,
  createSsoOrganization,
  oidcSettings,
  SSO_TEST_CONFIG,
  type SsoOrganization,
} from '../support/sso.ts';
import { useResource } from '../support/use-resource.ts';

const app = useTestApp({ config: SSO_TEST_CONFIG });
const provider = useResource(
  () => startOidcProvider(`${app.config.PUBLIC_URL}/api/v1/auth/sso/oidc/callback`),
  (started) => started.close(),
);

const LINKS = '/org/sso/setup-links';
const PAGE = '/sso-setup';
const ENDED = 'The set-up link is not valid';

let organization: SsoOrganization;
let guest: PageClient;
beforeEach(async () => {
  organization = await createSsoOrganization(app);
  guest = createPageClient(app);
});
afterEach(() => {
  jest.restoreAllMocks();
});

interface Link {
  id: string;
  path: string;
  token: string;
}

async function createLink(token = organization.ownerSession, body: object = {}): Promise<Link> {
  const created = await app.call(LINKS, { method: 'POST', token, body });
  expect(created.statusCode).toBe(201);
  const { id, url } = created.json<{ id: string; url: string }>();
  const { pathname, search, searchParams } = new URL(url);
  return { id, path: `${pathname}${search}`, token: searchParams.get('token') ?? '' };
}

/** Opens the link and presses its button. */
async function begin(browser: PageClient, { path }: Pick<Link, 'path'>) {
  await browser.open(path);
  return browser.submit(PAGE);
}

const oidcFields = () => ({
  name: 'Acme Identity',
  issuer: provider.issuer,
  client_id: OIDC_CLIENT.clientId,
  client_secret: OIDC_CLIENT.clientSecret,
  domains: organization.domain,
  default_role: 'viewer',
});
const samlFields = async () => ({
  name: 'Acme SAML',
  idp_metadata_url: '',
  idp_metadata_xml: idpMetadata([await createSamlKey()]),
  domains: organization.domain,
  default_role: 'viewer',
});

async function passTest(browser: PageClient) {
  await browser.open(PAGE);
  const leaving = await browser.submit(`${PAGE}/test`);
  const [, link = ''] = /<meta http-equiv="refresh" content="0; url=([^"]+)">/.exec(leaving.body) ?? [];
  const back = await signInAtOidcProvider(link.replaceAll('&amp;', '&'), `tester@${organization.domain}`);
  return browser.open(`${back.pathname}${back.search}`);
}

const listLinks = async () => (await app.call(LINKS, { token: organization.ownerSession })).json().data;
const listConfigurations = async () =>
  (await app.call('/org/sso', { token: organization.ownerSession })).json().data;
const readAudit = async () =>
  query<{
    action: string;
    actorKind: string;
    actorId: string;
    details: object;
    ip: string | null;
  }>(
    app.worker,
    sql`select action, actor_kind as "actorKind", actor_id as "actorId", details, ip from audit_entries
    where org_id = ${organization.organizationId} order by id`,
  );

describe('a set-up link', () => {
  test('lets a person outside the organization create, change and test one draft, which an owner activates', async () => {
    const email = newAddress();
    const creatorId = await createTestUser(app.worker, {
      organizationId: organization.organizationId,
      role: 'admin',
    });
    const { token } = await createTestSession(app.worker, creatorId);
    const link = await createLink(token, { email });
    expect(await readAccountMail(app, email)).toEqual([{ template: 'sso-setup-link', token: link.token }]);

    const opened = await guest.open(link.path);
    expect(opened.body).toContain('asks you to set up single sign-on');
    const begun = await begin(guest, link);
    expect(guest.path).toBe(PAGE);
    expect(begun.body).toContain(organization.domain);
    expect(begun.body).toContain('/api/v1/auth/sso/oidc/callback');
    const created = await guest.submit(`${PAGE}/oidc`, { ...oidcFields(), name: 'First name' });
    expect(created.body).toContain('First name <small>OIDC, draft</small>');
    const changed = await guest.submit(`${PAGE}/oidc`, { ...oidcFields(), client_secret: '' });
    expect(changed.body).toContain('Acme Identity <small>OIDC, draft</small>');
    expect(changed.body).not.toContain(OIDC_CLIENT.clientSecret);

    const tested = await passTest(guest);
    expect(tested.body).toContain('The test passed');
    expect(tested.body).toContain(`href="${PAGE}"`);
    expect((await guest.open(PAGE)).body).toContain('test, passed');
    const [configuration] = await listConfigurations();
    expect(configuration).toMatchObject({ status: 'tested', default_role: 'viewer' });
    const mails = await query<{ userId: string }>(
      app.worker,
      sql`select user_id as "userId" from notifications
      where org_id = ${organization.organizationId} and template = 'sso-setup-tested'`,
    );
    expect(mails.map(({ userId }) => userId).sort()).toEqual([organization.ownerId, creatorId].sort());

    const details = { setup_link_id: link.id, created_by: creatorId };
    const byGuest = { actorKind: 'system', actorId: link.id, ip: expect.any(String) };
    expect(await readAudit()).toEqual([
      expect.objectContaining({ action: 'sso_setup_link.created', actorId: creatorId }),
      { ...byGuest, action: 'sso_setup_link.used', details },
      expect.objectContaining({
        ...byGuest,
        action: 'sso_configuration.created',
        details: expect.objectContaining(details),
      }),
      expect.objectContaining({
        ...byGuest,
        action: 'sso_configuration.updated',
        details: expect.objectContaining(details),
      }),
    ]);

    const owner = createPageClient(app);
    owner.cookies.set('session', organization.ownerSession);
    const path = `/settings/single-sign-on?org=${organization.organizationId}`;
    expect((await owner.open(path)).body).toContain(`${email}</strong> <small>in use until`);
    await owner.submit('/settings/single-sign-on/activate');
    const after = await guest.open(PAGE);
    expect(after.body).toContain('It has been activated');
    expect(after.body).not.toContain('test, passed');
    for (const [form, fields] of [
      ['oidc', oidcFields()],
      ['test', {}],
    ] as const) {
      const refused = await postForm(guest, `${PAGE}/${form}`, fields);
      expect({ form, status: refused.statusCode }).toEqual({ form, status: 409 });
    }
    expect(await listConfigurations()).toHaveLength(1);
  });

  test('creates a SAML draft, and shows what the identity provider has to know', async () => {
    await begin(guest, await createLink());
    const created = await guest.submit(`${PAGE}/saml`, await samlFields());
    expect(created.body).toContain('SAML, draft');
    expect(created.body).toMatch(/\/api\/v1\/auth\/sso\/saml\/sso_\w+\/acs/);
    const kept = await guest.submit(`${PAGE}/saml`, {
      ...(await samlFields()),
      name: 'Renamed',
      idp_metadata_xml: '',
    });
    expect(kept.body).toContain('Renamed');
    const otherType = await postForm(guest, `${PAGE}/oidc`, oidcFields());
    expect(otherType.statusCode).toBe(409);
  });

  test('is made and revoked on the page of the organization', async () => {
    const owner = createPageClient(app);
    owner.cookies.set('session', organization.ownerSession);
    const at = (path: string) => `/settings/single-sign-on${path}`;
    await owner.open(at(''));
    const made = await owner.submit(at('/setup-links'), { email: '' });
    const [, url = ''] = /id="setup-link">.*?<code>([^<]+)</.exec(made.body) ?? [];
    const { pathname, search } = new URL(url);
    await begin(guest, { path: `${pathname}${search}` });
    expect((await owner.open(at(''))).body).not.toContain(search);
    await owner.submit(at('/setup-links/revoke'));
    expect((await guest.open(PAGE)).body).toContain(ENDED);
    const mailed = await owner.submit(at('/setup-links'), { email: newAddress() });
    expect(mailed.body).toContain('The set-up link is on its way');
    expect(mailed.body).toContain('open until');
    const refused = await owner.submit(at('/setup-links'), { email: 'nonsense' });
    expect(refused.statusCode).toBe(400);
  });

  test('is not used up by opening it, and only once by its button, also by two browsers at the same time', async () => {
    const link = await createLink();
    const others = [guest, createPageClient(app)];
    for (const browser of [...others, ...others]) await browser.open(link.path);
    const before = await query(
      app.worker,
      sql`select used_at as "usedAt", session_hash as "sessionHash" from sso_setup_links where id = ${link.id}`,
    );
    expect(before).toEqual([{ usedAt: null, sessionHash: null }]);
    const answers = await Promise.all(others.map((browser) => browser.submit(PAGE)));
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 401]);
    const used = others.filter((browser) => browser.cookies.has('sso-setup'));
    expect(used).toHaveLength(1);
    const another = createPageClient(app);
    expect((await another.open(link.path)).body).toContain(ENDED);
    expect((await another.open(PAGE)).statusCode).toBe(401);
    // The browser that used it finds its page by the link, too.
    expect((await used[0]?.open(link.path))?.statusCode).toBe(200);
  });

  test('creates one draft if the form is submitted twice at the same time', async () => {
    await begin(guest, await createLink());
    const fields = { ...oidcFields(), csrf: csrfOf((await guest.open(PAGE)).body) };
    const answers = await Promise.all([1, 2, 3].map(() => guest.post(`${PAGE}/oidc`, fields)));
    expect(answers.filter(({ statusCode }) => statusCode === 303).length).toBeGreaterThan(0);
    expect(await listConfigurations()).toHaveLength(1);
  });

  const ends: [string, (link: Link, admin: string) => Promise<unknown>][] = [
    [
      'it is revoked',
      (link) => app.call(`${LINKS}/${link.id}`, { method: 'DELETE', token: organization.ownerSession }),
    ],
    [
      'it has expired',
      ({ id }) =>
        query(
          app.worker,
          sql`update sso_setup_links set expires_at = now() - interval '1 second' where id = ${id} returning id`,
        ),
    ],
    [
      'the organization is suspended',
      () =>
        query(
          app.worker,
          sql`update organizations set status = 'suspended' where id = ${organization.organizationId} returning id`,
        ),
    ],
    [
      'the organization is closed',
      () =>
        query(
          app.worker,
          sql`update organizations set deleted_at = now() where id = ${organization.organizationId} returning id`,
        ),
    ],
    [
      'its creator may not set up single sign-on any more',
      (_link, admin) =>
        query(
          app.worker,
          sql`update members set role = 'developer' where user_id = ${admin} returning user_id`,
        ),
    ],
    [
      'its creator has left',
      (_link, admin) =>
        query(app.worker, sql`delete from members where user_id = ${admin} returning user_id`),
    ],
    [
      'the account of its creator is suspended',
      (_link, admin) =>
        query(app.worker, sql`update users set status = 'suspended' where id = ${admin} returning id`),
    ],
  ];
  test.each(ends)('ends with its session when %s', async (_when, end) => {
    const admin = await createTestUser(app.worker, {
      organizationId: organization.organizationId,
      role: 'admin',
    });
    const { token } = await createTestSession(app.worker, admin);
    const [used, unused] = [await createLink(token), await createLink(token)];
    await begin(guest, used);
    const created = await guest.submit(`${PAGE}/oidc`, oidcFields());
    const csrf = csrfOf(created.body);
    const another = createPageClient(app);
    await another.open(unused.path);
    for (const link of [used, unused]) await end(link, admin);
    expect((await another.submit(PAGE)).statusCode).toBe(401);
    expect(another.cookies.has('sso-setup')).toBe(false);
    expect((await another.open(unused.path)).body).toContain(ENDED);
    expect((await guest.open(PAGE)).body).toContain(ENDED);
    for (const [form, fields] of [
      ['oidc', { ...oidcFields(), name: 'Too late' }],
      ['test', {}],
    ] as const) {
      const refused = await guest.post(`${PAGE}/${form}`, { ...fields, csrf });
      expect({ form, status: refused.statusCode }).toEqual({ form, status: 401 });
    }
    const names = await query(
      app.worker,
      sql`select name from sso_configurations where org_id = ${organization.organizationId}`,
    );
    expect(names).toEqual([{ name: 'Acme Identity' }]);
  });

  test('of a key ends with the key', async () => {
    const { token, keyId } = await createKey(app.worker, { organizationId: organization.organizationId });
    const link = await createLink(token);
    await begin(guest, link);
    expect((await guest.open(PAGE)).statusCode).toBe(200);
    const sets = ['revoked_at', 'expires_at'].map(
      (column) => [sql`${sql.ref(column)} = now()`, sql`${sql.ref(column)} = null`] as const,
    );
    for (const [end, restore] of [
      ...sets,
      [
        sql`permissions = array_remove(permissions, 'sso:manage')`,
        sql`permissions = permissions || '{sso:manage}'::text[]`,
      ] as const,
    ]) {
      await query(app.worker, sql`update api_keys set ${end} where id = ${keyId} returning id`);
      expect((await guest.open(PAGE)).statusCode).toBe(401);
      await query(app.worker, sql`update api_keys set ${restore} where id = ${keyId} returning id`);
    }
  });

  test('has no session for longer than two hours', async () => {
    const link = await createLink();
    await begin(guest, link);
    const [row] = await query<{ minutes: number }>(
      app.worker,
      sql`select round(extract(epoch from expires_at - used_at) / 60)::int as minutes
      from sso_setup_links where id = ${link.id}`,
    );
    expect(row).toEqual({ minutes: 120 });
  });
});

describe('the guest of a set-up link', () => {
  test('can name no configuration in any form, and reaches none but their own', async () => {
    const victim = await createSsoOrganization(app);
    const own = await createConfiguration(
      app,
      organization.token,
      oidcSettings(provider.issuer, organization.domain),
    );
    const foreign = await createConfiguration(
      app,
      victim.token,
      oidcSettings(provider.issuer, victim.domain),
    );
    await begin(guest, await createLink());
    for (const id of [own, foreign])
      for (const [form, fields] of [
        ['', { token: 'x' }],
        ['/oidc', oidcFields()],
        ['/saml', await samlFields()],
        ['/test', {}],
      ] as const)
        for (const name of ['configuration_id', 'id', 'replaces_id']) {
          const answer = await postForm(guest, `${PAGE}${form}`, { ...fields, [name]: id });
          expect({ form, name, status: answer.statusCode }).toEqual({ form, name, status: 400 });
        }
    const page = (await guest.open(PAGE)).body;
    for (const text of [own, foreign, victim.domain, 'Test provider']) expect(page).not.toContain(text);
    // Without a draft there is nothing to test.
    expect((await postForm(guest, `${PAGE}/test`, {})).statusCode).toBe(409);
  });

  test('gets nowhere else with the cookie or the token, and cannot activate or delete', async () => {
    const link = await createLink();
    await begin(guest, link);
    await guest.submit(`${PAGE}/oidc`, oidcFields());
    const [{ id }] = await listConfigurations();
    await query(
      app.worker,
      sql`update sso_configurations set status = 'tested', tested_at = now() where id = ${id} returning id`,
    );
    const session = guest.cookies.get('sso-setup') ?? '';
    for (const token of [session, link.token])
      for (const [method, path] of [
        ['POST', `/org/sso/${id}/activate`],
        ['DELETE', `/org/sso/${id}`],
        ['GET', '/org/sso'],
        ['GET', '/org/members'],
        ['GET', '/user/me'],
        ['POST', LINKS],
      ] as const)
        expectProblem(await app.call(path, { method, token }), 'unauthenticated');
    const csrf = csrfOf((await guest.open(PAGE)).body);
    for (const action of ['activate', 'delete', 'disable', 'test', 'setup-links', 'setup-links/revoke']) {
      const path = `/settings/single-sign-on/${action}`;
      const answer = await guest.post(path, { csrf, configuration_id: id });
      expect({ action, to: answer.headers.location }).toEqual({
        action,
        to: expect.stringMatching(/^\/login\?/),
      });
    }
    for (const action of ['activate', 'delete', 'disable'])
      expect((await guest.post(`${PAGE}/${action}`, { csrf })).statusCode).toBe(404);
    // Neither as somebody's session.
    guest.cookies.set('session', session);
    await guest.open('/settings');
    expect(guest.path).toMatch(/^\/login\?/);
    expect(await listConfigurations()).toMatchObject([{ status: 'tested' }]);
  });

  test('makes no one an administrator', async () => {
    await begin(guest, await createLink());
    const refused = await guest.submit(`${PAGE}/oidc`, { ...oidcFields(), default_role: 'admin' });
    expect(refused.statusCode).toBe(400);
    expect(await listConfigurations()).toEqual([]);
  });

  test('does not change what an administrator has activated meanwhile', async () => {
    await begin(guest, await createLink());
    await guest.submit(`${PAGE}/oidc`, oidcFields());
    const [{ id }] = await listConfigurations();
    await activateUntested(app, organization.token, id);
    await postForm(guest, `${PAGE}/oidc`, { ...oidcFields(), issuer: 'https://evil.example' });
    await app.call(`/org/sso/${id}`, {
      method: 'PATCH',
      token: organization.ownerSession,
      body: { disabled: true },
    });
    const refused = await postForm(guest, `${PAGE}/oidc`, {
      ...oidcFields(),
      issuer: 'https://evil.example',
    });
    expect(refused.statusCode).toBe(409);
    expect(await listConfigurations()).toMatchObject([{ id, issuer: provider.issuer }]);
  });

  test('changes nothing if the link is revoked while the metadata is read', async () => {
    const metadata = idpMetadata([await createSamlKey()]);
    let revoke: () => Promise<unknown> = async () => undefined;
    const server = createServer(async (_request, response) => {
      await revoke();
      response.end(metadata);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const link = await createLink();
      await begin(guest, link);
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/metadata`;
      const fields = { ...(await samlFields()), idp_metadata_xml: '', idp_metadata_url: url };
      expect((await guest.submit(`${PAGE}/saml`, fields)).body).toContain('SAML, draft');
      revoke = () => app.call(`${LINKS}/${link.id}`, { method: 'DELETE', token: organization.ownerSession });
      const refused = await guest.submit(`${PAGE}/saml`, {
        ...fields,
        name: 'Too late',
        idp_metadata_url: `${url}/new`,
      });
      expect(refused.statusCode).toBe(401);
      expect(await listConfigurations()).toMatchObject([{ name: 'Acme SAML' }]);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  test('may create another draft when an administrator has deleted the first', async () => {
    await begin(guest, await createLink());
    await guest.submit(`${PAGE}/oidc`, oidcFields());
    const [{ id }] = await listConfigurations();
    await app.call(`/org/sso/${id}`, { method: 'DELETE', token: organization.ownerSession });
    expect((await guest.open(PAGE)).body).toContain('or SAML');
    await guest.submit(`${PAGE}/saml`, await samlFields());
    expect(await listConfigurations()).toMatchObject([{ type: 'saml' }]);
  });

  test('submits no form without its token of this browser', async () => {
    const link = await createLink();
    const foreign = csrfOf((await createPageClient(app).open(link.path)).body);
    await guest.open(link.path);
    for (const csrf of ['', 'x', foreign]) {
      expect((await guest.post(PAGE, { token: link.token, csrf })).statusCode).toBe(403);
    }
    await begin(guest, link);
    for (const form of ['oidc', 'saml', 'test'])
      expect((await guest.post(`${PAGE}/${form}`, { csrf: foreign })).statusCode).toBe(403);
  });

  test('leaves no token in logs and no readable one in the database', async () => {
    const log = app.app.log as unknown as pino.Logger & Record<symbol, { write(line: string): void }>;
    const lines: string[] = [];
    const stream = log[pino.symbols.streamSym as symbol];
    if (!stream) throw new Error('The logger has no stream');
    jest.spyOn(stream, 'write').mockImplementation((line) => void lines.push(line));
    const level = log.level;
    log.level = 'trace';
    try {
      const link = await createLink(organization.ownerSession, { email: newAddress() });
      await begin(guest, link);
      await guest.submit(`${PAGE}/oidc`, oidcFields());
      await createPageClient(app).open(link.path);
      const secrets = [link.token, guest.cookies.get('sso-setup') ?? ''];
      expect(lines.join('')).toContain(PAGE);
      for (const secret of secrets) expect(lines.join('')).not.toContain(secret);
      const rows = await query(
        app.worker,
        sql`select to_jsonb(l) as row from sso_setup_links l where id = ${link.id}
        union all select to_jsonb(n) from notifications n where org_id = ${organization.organizationId}
        union all select to_jsonb(a) from audit_entries a where org_id = ${organization.organizationId}`,
      );
      for (const secret of secrets) expect(JSON.stringify(rows)).not.toContain(secret);
    } finally {
      log.level = level;
    }
  });
});

describe('set-up links', () => {
  test('are listed while they are open, and revoked', async () => {
    const [first, second] = [await createLink(), await createLink(organization.token)];
    await begin(guest, first);
    expect(await listLinks()).toEqual([
      expect.objectContaining({ id: second.id, used_at: null, created_by_user_id: null }),
      expect.objectContaining({
        id: first.id,
        email: null,
        created_by_user_id: organization.ownerId,
        used_at: expect.any(String),
      }),
    ]);
    const revoke = (id: string, token = organization.ownerSession) =>
      app.call(`${LINKS}/${id}`, { method: 'DELETE', token });
    const other = await createOrganization(app.worker);
    expectProblem(await revoke(first.id, other.token), 'not_found');
    expect((await revoke(first.id)).statusCode).toBe(204);
    expectProblem(await revoke(first.id), 'not_found');
    expect(await listLinks()).toMatchObject([{ id: second.id }]);
    expect((await readAudit()).map(({ action }) => action)).toContain('sso_setup_link.revoked');
  });

  test('are limited to 5 open ones, also at the same time, and to one email a day to an address', async () => {
    const email = newAddress();
    const call = (body: object) =>
      app.call(LINKS, { method: 'POST', token: organization.ownerSession, body });
    expect((await call({ email })).statusCode).toBe(201);
    expectProblem(await call({ email }), 'rate_limited');
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => call({})));
    expect(answers.filter(({ statusCode }) => statusCode === 201)).toHaveLength(4);
    expectProblem(await call({}), 'conflict');
    expectProblem(await call({ email: 'nonsense' }), 'validation_error');
  });

  test('are for those who manage single sign-on in the whole organization', async () => {
    const { organizationId } = organization;
    const developer = await createTestUser(app.worker, { organizationId, role: 'developer' });
    const { token } = await createTestSession(app.worker, developer);
    expectProblem(await app.call(LINKS, { method: 'POST', token }), 'permission_denied');
    const bound = await createKey(app.worker, {
      organizationId,
      environmentId: organization.productionEnvironmentId,
    });
    expectProblem(await app.call(LINKS, { method: 'POST', token: bound.token }), 'permission_denied');
    expectProblem(await app.call(LINKS, { token: bound.token }), 'permission_denied');
  });

  test('are deleted a week after their end', async () => {
    const [kept, old] = [await createLink(), await createLink()];
    await query(
      app.worker,
      sql`update sso_setup_links set expires_at = now() - interval '8 days' where id = ${old.id} returning id`,
    );
    await purgeSsoSetupLinks(app.worker);
    const rows = await query(
      app.worker,
      sql`select id from sso_setup_links where org_id = ${organization.organizationId}`,
    );
    expect(rows).toEqual([{ id: kept.id }]);
  });
});

function csrfOf(html: string): string {
  return /name="csrf" value="([^"]+)"/.exec(html)?.[1] ?? '';
}

/** Submits a form that the page may not show. */
async function postForm(browser: PageClient, path: string, fields: Record<string, string>) {
  const csrf = csrfOf((await browser.open(PAGE)).body) || csrfOf((await browser.open('/login')).body);
  return browser.post(path, { ...fields, csrf });
}
