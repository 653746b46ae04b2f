import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { findFreePort } from '../../dev/stack/ports.ts';
import { purgeSsoAttempts, purgeSsoTransactions } from '../../domain/sso/sso-purges.ts';
import { newId } from '../../platform/ids.ts';
import { startForgingProvider } from '../support/identity-providers.ts';
import { createKey } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import {
  activateUntested,
  Browser,
  createConfiguration,
  createSsoOrganization,
  oidcSettings,
  readAttempts,
  SSO_TEST_CONFIG,
  type SsoOrganization,
} from '../support/sso.ts';
import { useResource } from '../support/use-resource.ts';

const app = useTestApp({ config: SSO_TEST_CONFIG });
const forger = useResource(startForgingProvider, (started) => started.close());

let organization: SsoOrganization;
beforeEach(async () => {
  organization = await createSsoOrganization(app);
});

const ISSUER = 'https://login.example.test';
const settings = (change: object = {}) => ({ ...oidcSettings(ISSUER, organization.domain), ...change });
const create = (body: object = settings(), token = organization.token) =>
  app.call('/org/sso', { method: 'POST', token, body });
const patch = (id: string, body: object, token = organization.token) =>
  app.call(`/org/sso/${id}`, { method: 'PATCH', token, body });
const activate = (id: string) =>
  app.call(`/org/sso/${id}/activate`, { method: 'POST', token: organization.token });

describe('an SSO configuration', () => {
  test('begins as a draft, and never returns its secret', async () => {
    const created = await create();
    expect(created.statusCode).toBe(201);
    expect(created.json()).toEqual({
      object: 'sso_configuration',
      id: expect.stringMatching(/^sso_/),
      type: 'oidc',
      status: 'draft',
      name: 'Test provider',
      issuer: ISSUER,
      client_id: 'agent-email',
      domains: [organization.domain],
      default_role: 'developer',
      entity_id: null,
      idp_metadata_url: null,
      allow_idp_initiated: null,
      certificate_expires_at: null,
      metadata_read_at: null,
      pending_changes: null,
      unlinked_members: null,
      sp_entity_id: null,
      acs_url: null,
      sp_metadata_url: null,
      redirect_uri: `${app.config.PUBLIC_URL}/api/v1/auth/sso/oidc/callback`,
      created_at: expect.any(String),
      tested_at: null,
      activated_at: null,
    });
    const secret = settings().client_secret;
    const listed = await app.call('/org/sso', { token: organization.token });
    expect(created.body + listed.body).not.toContain(secret);
    const stored = await query(app.worker, sql`select row_to_json(c)::text as row from sso_configurations c`);
    expect(JSON.stringify(stored)).not.toContain(secret);
  });

  test.each([
    ['type', 'ldap'],
    ['name', ''],
    ['name', 'x'.repeat(101)],
    ['domains', []],
    ['domains', ['not a domain']],
    ['domains', ['com']],
    ['domains', ['mail.test']],
    ['domains', ['sub.mail.test']],
    ['domains', ['192.0.2.1']],
    ['domains', 'example.com'],
    ['default_role', 'owner'],
    ['default_role', 'staff'],
    ['issuer', 'not a URL'],
    ['issuer', 'ftp://login.example.test'],
    ['issuer', 'javascript:alert(1)'],
    ['issuer', 'http://169.254.169.254/latest/meta-data'],
    ['issuer', 'http://[::ffff:169.254.169.254]/'],
    ['issuer', 'https://user:password@login.example.test'],
    ['issuer', 'https://login.example.test/?a=b'],
    ['issuer', 'https://login.example.test/#a'],
    ['issuer', undefined],
    ['client_id', undefined],
    ['client_id', ''],
    ['client_secret', undefined],
    ['idp_metadata_xml', '<a/>'],
    ['allow_idp_initiated', true],
    ['status', 'active'],
    ['tested_at', '2026-01-01T00:00:00.000Z'],
    ['org_id', newId('organization')],
  ])('is refused with %s %j', async (field, value) => {
    const { [field]: _, ...others } = settings() as Record<string, unknown>;
    expectProblem(
      await create(value === undefined ? others : { ...others, [field]: value }),
      'validation_error',
    );
    expect((await app.call('/org/sso', { token: organization.token })).json().data).toEqual([]);
  });

  test.each([
    ['nothing', {}],
    ['another type', { type: 'saml' }],
    ['a field of the other type', { idp_metadata_xml: '<a/>' }],
    ['an empty name', { name: '' }],
    ['the role of an owner', { default_role: 'owner' }],
    ['an internal issuer', { issuer: 'http://10.0.0.1/' }],
    ['an issuer that is no text', { issuer: 1 }],
    ['no domains', { domains: [] }],
    ['domains that are no text', { domains: [null] }],
    ['a status', { status: 'active' }],
    ['disabled: false', { disabled: false }],
    ['a list', []],
  ])('is not changed by %s', async (_name, body) => {
    const { id } = (await create()).json();
    expectProblem(await patch(id, body), 'validation_error');
  });

  test('accepts what it returned, with null for the fields of the other type', async () => {
    const { id } = (await create()).json();
    const body = { name: 'Next', entity_id: undefined, idp_metadata_url: null, allow_idp_initiated: null };
    expect((await patch(id, body)).json()).toMatchObject({ name: 'Next', issuer: ISSUER });
  });

  test('is managed with the permission sso:manage alone, by members of the organization alone', async () => {
    const { token } = await createKey(app.worker, { ...organization, permissions: ['policies:manage'] });
    expectProblem(await create(settings(), token), 'permission_denied');
    const developer = await createTestUser(app.worker, { ...organization, role: 'developer' });
    const session = await createTestSession(app.worker, developer);
    expectProblem(await create(settings(), session.token), 'permission_denied');
    const bound = await createKey(app.worker, {
      ...organization,
      environmentId: organization.productionEnvironmentId,
    });
    expectProblem(await create(settings(), bound.token), 'permission_denied');
    const other = await createSsoOrganization(app);
    const id = (await create()).json().id;
    for (const call of [
      app.call(`/org/sso/${id}`, { method: 'PATCH', token: other.token, body: { name: 'x' } }),
      app.call(`/org/sso/${id}`, { method: 'DELETE', token: other.token }),
      app.call(`/org/sso/${id}/test`, { method: 'POST', token: other.token }),
      app.call(`/org/sso/${id}/activate`, { method: 'POST', token: other.token }),
      app.call(`/org/sso/${id}/attempts`, { token: other.token }),
    ])
      expectProblem(await call, 'not_found');
  });

  test('whose identity provider cannot be reached says so when its test begins, instead of a failed sign-in', async () => {
    const issuer = `http://127.0.0.1:${await findFreePort()}`;
    const id = (await create(settings({ issuer }))).json().id;
    const begin = () => app.call(`/org/sso/${id}/test`, { method: 'POST', token: organization.token });
    const problem = expectProblem(await begin(), 'unprocessable');
    expect(problem).toMatchObject({ status: 422, check: 'provider', expected: 'OpenID Connect discovery' });
    expect(problem.detail).toContain('could not be reached');
    expect(problem.fix).toContain('PATCH /api/v1/org/sso/');
    expect(await readAttempts(app, organization.token, id)).toMatchObject([
      { purpose: 'test', succeeded: false, checks: [{ name: 'provider', passed: false }] },
    ]);
  });

  test('is activated only when tested, and only with verified domains', async () => {
    const id = (await create()).json().id;
    expectProblem(await activate(id), 'conflict');
    await patch(id, { domains: [organization.domain, 'unverified.example.com'] });
    await query(
      app.worker,
      sql`update sso_configurations set status = 'tested', tested_at = now() where id = ${id}`,
    );
    expectProblem(await activate(id), 'domain_not_verified');
    const changed = await patch(id, { domains: [organization.domain] });
    expect(changed.json()).toMatchObject({ status: 'draft', tested_at: null });
    expectProblem(await activate(id), 'conflict');
  });

  test("does not use another organization's verified domain", async () => {
    const other = await createSsoOrganization(app);
    const id = (await create(settings({ domains: [other.domain] }))).json().id;
    await query(
      app.worker,
      sql`update sso_configurations set status = 'tested', tested_at = now() where id = ${id}`,
    );
    expectProblem(await activate(id), 'domain_not_verified');
  });

  test('is one active at a time, of two activated concurrently too; owners are informed', async () => {
    const ids = await Promise.all([1, 2].map(async () => (await create()).json().id));
    await query(
      app.worker,
      sql`update sso_configurations set status = 'tested', tested_at = now() where id = any(${ids})`,
    );
    const answers = await Promise.all(ids.map(activate));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    const active = await query(
      app.worker,
      sql`select from sso_configurations where org_id = ${organization.organizationId} and status = 'active'`,
    );
    expect(active).toHaveLength(1);
    const mails = await query(
      app.worker,
      sql`select from notifications where org_id = ${organization.organizationId} and template = 'sso-activated'`,
    );
    expect(mails).toHaveLength(2);
  });

  test('that is active keeps its id, and what needs a test waits as pending changes until it is activated', async () => {
    const id = await createConfiguration(app, organization.token, settings());
    await activateUntested(app, organization.token, id);
    const changed = (await patch(id, { name: 'Next', client_id: 'next' })).json();
    expect(changed).toMatchObject({
      id,
      status: 'active',
      name: 'Next',
      client_id: 'agent-email',
      pending_changes: { issuer: ISSUER, client_id: 'next', tested_at: null },
    });
    const again = (await patch(id, { client_secret: 'other' })).json();
    expect(again.pending_changes).toMatchObject({ client_id: 'next' });
    const { data } = (await app.call('/org/sso', { token: organization.token })).json();
    expect(data).toEqual([again]);
    expectProblem(await activate(id), 'conflict');
    await activateUntested(app, organization.token, id);
    const [active] = (await app.call('/org/sso', { token: organization.token })).json().data;
    expect(active).toMatchObject({ id, status: 'active', client_id: 'next', pending_changes: null });
  });

  test('that is active changes at once where no test is needed, also together with its pending changes', async () => {
    const id = await createConfiguration(app, organization.token, settings());
    await activateUntested(app, organization.token, id);
    const unchanged = { ...settings(), type: undefined, client_secret: undefined };
    expect((await patch(id, { ...unchanged, default_role: 'viewer' })).json()).toMatchObject({
      default_role: 'viewer',
      pending_changes: null,
    });
    await patch(id, { client_id: 'next' });
    await patch(id, { default_role: 'admin', name: 'Later' });
    await activateUntested(app, organization.token, id);
    const [active] = (await app.call('/org/sso', { token: organization.token })).json().data;
    expect(active).toMatchObject({ client_id: 'next', default_role: 'admin', name: 'Later' });
    expectProblem(
      await patch(id, { domains: [organization.domain, 'unverified.example.com'] }),
      'domain_not_verified',
    );
  });

  test('that is active lets its pending changes be discarded', async () => {
    const id = await createConfiguration(app, organization.token, settings());
    await activateUntested(app, organization.token, id);
    expectProblem(await patch(id, { pending_changes: null }), 'conflict');
    await patch(id, { client_id: 'next' });
    expectProblem(await patch(id, { pending_changes: null, name: 'x' }), 'validation_error');
    expect((await patch(id, { pending_changes: null })).json()).toMatchObject({
      client_id: 'agent-email',
      pending_changes: null,
    });
  });

  test('gets one set of pending changes, of two changes at once too', async () => {
    const id = await createConfiguration(app, organization.token, settings());
    await activateUntested(app, organization.token, id);
    const answers = await Promise.all([
      patch(id, { client_id: 'next' }),
      patch(id, { issuer: 'https://next.example.test' }),
    ]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    const [row] = (await app.call('/org/sso', { token: organization.token })).json().data;
    expect(row.pending_changes).toMatchObject({ client_id: 'next', issuer: 'https://next.example.test' });
  });

  test('takes its secret along from its pending changes', async () => {
    forger.state.metadata = {};
    const id = await createConfiguration(app, organization.token, settings({ issuer: forger.issuer }));
    await activateUntested(app, organization.token, id);
    await patch(id, { client_secret: 'the-next-secret' });
    await activateUntested(app, organization.token, id);
    const browser = new Browser(app);
    const url = await browser.start(organization.organizationId);
    forger.state.requests = [];
    await browser.call(`/auth/sso/oidc/callback?code=x&state=${url.searchParams.get('state')}`);
    const [request] = forger.state.requests.filter(({ path }) => path === '/token');
    const authorization = Buffer.from(request?.authorization?.split(' ')[1] ?? '', 'base64').toString();
    expect(`${authorization} ${request?.body}`).toContain('the%2Dnext%2Dsecret');
  });

  test('lets no login and no session in when it is disabled, and ends its sessions when it is deleted', async () => {
    const id = await createConfiguration(app, organization.token, settings());
    await activateUntested(app, organization.token, id);
    const member = await createTestUser(app.worker, { ...organization, role: 'viewer' });
    const session = await createTestSession(app.worker, member, { method: 'sso', ssoConfigurationId: id });
    expectProblem(await patch(id, { disabled: true, name: 'x' }), 'validation_error');
    expect((await patch(id, { disabled: true })).json()).toMatchObject({
      status: 'disabled',
      tested_at: null,
    });
    expectProblem(await patch(id, { disabled: true }), 'conflict');
    expectProblem(await new Browser(app).call(`/auth/sso/${organization.organizationId}`), 'not_found');
    expectProblem(await app.call('/org', { token: session.token }), 'policy_violation');
    expect(
      (await app.call(`/org/sso/${id}`, { method: 'DELETE', token: organization.token })).statusCode,
    ).toBe(204);
    expectProblem(await app.call('/org', { token: session.token }), 'unauthenticated');
    expectProblem(
      await app.call(`/org/sso/${id}`, { method: 'DELETE', token: organization.token }),
      'not_found',
    );
  });

  test('leaves its changes in the audit log, without secrets', async () => {
    const id = await createConfiguration(app, organization.token, settings());
    await activateUntested(app, organization.token, id);
    await patch(id, { client_secret: 'the-next-secret' });
    await patch(id, { disabled: true });
    await app.call(`/org/sso/${id}`, { method: 'DELETE', token: organization.token });
    const log = await app.call('/org/audit-log', { token: organization.token });
    const actions = log.json().data.map(({ action }: { action: string }) => action);
    for (const what of ['created', 'activated', 'updated', 'disabled', 'deleted'])
      expect(actions).toContain(`sso_configuration.${what}`);
    expect(log.body).not.toContain('secret-of-the-tests');
    expect(log.body).not.toContain('the-next-secret');
  });

  test('keeps the last 20 attempts, for seven days, and its logins for ten minutes', async () => {
    forger.state.metadata = { issuer: 'https://another.example' };
    const id = await createConfiguration(app, organization.token, settings({ issuer: forger.issuer }));
    await activateUntested(app, organization.token, id);
    for (let count = 0; count < 22; count += 1)
      await new Browser(app).call(`/auth/sso/${organization.organizationId}`);
    expect(await readAttempts(app, organization.token, id)).toHaveLength(20);
    await query(
      app.worker,
      sql`update sso_attempts set created_at = now() - interval '8 days' where configuration_id = ${id}`,
    );
    await purgeSsoAttempts(app.worker);
    expect(await readAttempts(app, organization.token, id)).toEqual([]);
    forger.state.metadata = {};
    await new Browser(app).start(organization.organizationId);
    await query(
      app.worker,
      sql`update sso_transactions set expires_at = now() - interval '1 second' where configuration_id = ${id}`,
    );
    await purgeSsoTransactions(app.worker);
    const left = sql`select from sso_transactions where configuration_id = ${id}`;
    expect(await query(app.worker, left)).toEqual([]);
  });

  test('does not exceed 20 in an organization', async () => {
    for (let count = 0; count < 20; count += 1) expect((await create()).statusCode).toBe(201);
    expectProblem(await create(), 'conflict');
  });
});
