import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { newId } from '../../platform/ids.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import {
  activateUntested,
  createConfiguration,
  createSsoOrganization,
  oidcSettings,
  SSO_TEST_CONFIG,
  type SsoOrganization,
} from '../support/sso.ts';

const app = useTestApp({ config: SSO_TEST_CONFIG });
let organization: SsoOrganization;
let configurationId: string;
let ownerThroughSso: string;

beforeEach(async () => {
  organization = await createSsoOrganization(app);
  const { token, domain, ownerId } = organization;
  configurationId = await createConfiguration(app, token, oidcSettings('https://login.example.test', domain));
  await activateUntested(app, token, configurationId);
  ownerThroughSso = await signInBySso(ownerId);
});

const signInBySso = async (userId: string, ssoConfigurationId = configurationId) =>
  (await createTestSession(app.worker, userId, { method: 'sso', ssoConfigurationId })).token;

async function addFactor(userId: string, type: 'totp' | 'webauthn', withPassword: boolean): Promise<void> {
  await query(
    app.worker,
    sql`insert into mfa_enrollments (id, user_id, type, name, confirmed_at, created_at)
    values (${newId('mfaEnrollment')}, ${userId}, ${type}, 'x', now(), now())`,
  );
  if (withPassword) await query(app.worker, sql`update users set password_hash = 'x' where id = ${userId}`);
}

const setPolicy = (token: string, body: object = { enforce_sso: true }) =>
  app.call('/org/policies', { method: 'PATCH', token, body });

async function enforce(): Promise<void> {
  await addFactor(organization.ownerId, 'webauthn', false);
  const response = await setPolicy(ownerThroughSso);
  if (response.statusCode !== 200) throw new Error(response.body);
}

const enter = (token: string, headers: Record<string, string> = {}) => app.call('/org', { token, headers });

describe('enforce_sso is turned on', () => {
  test('from a session of the active configuration alone', async () => {
    await addFactor(organization.ownerId, 'webauthn', false);
    const other = await createConfiguration(
      app,
      organization.token,
      oidcSettings('https://other.example.test', organization.domain),
    );
    for (const token of [organization.token, organization.ownerSession])
      expect(expectProblem(await setPolicy(token), 'conflict')).toMatchObject({ policy: 'enforce_sso' });
    for (const id of [other, newId('ssoConfiguration')])
      expectProblem(await setPolicy(await signInBySso(organization.ownerId, id)), 'policy_violation');
    expect((await setPolicy(ownerThroughSso)).json()).toMatchObject({ enforce_sso: true });
  });

  test.each([
    ['a passkey', 'webauthn', false, true],
    ['a password and a second factor', 'totp', true, true],
    ['a second factor without a password', 'totp', false, false],
  ] as const)('while an owner has %s', async (_name, type, withPassword, isAccepted) => {
    expectProblem(await setPolicy(ownerThroughSso), 'conflict');
    await addFactor(organization.ownerId, type, withPassword);
    expect((await setPolicy(ownerThroughSso)).statusCode).toBe(isAccepted ? 200 : 409);
  });

  test('not while only a suspended owner could get in', async () => {
    const second = await createTestUser(app.worker, { ...organization, role: 'owner' });
    await addFactor(second, 'webauthn', false);
    await query(app.worker, sql`update users set status = 'suspended' where id = ${second}`);
    expectProblem(await setPolicy(ownerThroughSso), 'conflict');
  });
});

describe('under enforce_sso', () => {
  beforeEach(enforce);

  test.each([
    ['a password', { method: 'password' }],
    ['a password and a second factor', { method: 'password', factors: ['totp'] }],
    ['a passkey', { method: 'passkey' }],
    ['OAuth', { method: 'oauth' }],
    ['SSO of another configuration', { method: 'sso', ssoConfigurationId: newId('ssoConfiguration') }],
  ] as const)('an admin with a session by %s is refused and told the way in', async (_name, session) => {
    const admin = await createTestUser(app.worker, { ...organization, role: 'admin' });
    const { token } = await createTestSession(app.worker, admin, session);
    const problem = expectProblem(await enter(token), 'policy_violation');
    expect(problem).toMatchObject({
      policy: 'enforce_sso',
      sso_path: `/api/v1/auth/sso/${organization.organizationId}`,
    });
    expectProblem(
      await app.call('/api-keys', { method: 'POST', token, body: { name: 'x' } }),
      'policy_violation',
    );
    expectProblem(await app.call('/events/stream', { token }), 'policy_violation');
    expect((await app.call('/user/me', { token })).statusCode).toBe(200);
    expect((await enter(await signInBySso(admin))).statusCode).toBe(200);
  });

  test('a member of two organizations enters this one by SSO alone, and the other one as before', async () => {
    const other = await createSsoOrganization(app);
    const userId = await createTestUser(app.worker, { ...organization, role: 'admin' });
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at) values (${other.organizationId}, ${userId}, 'viewer', now())`,
    );
    const { token } = await createTestSession(app.worker, userId, { method: 'passkey' });
    const named = (id: string) => ({ 'x-org-id': id });
    expectProblem(await enter(token, named(organization.organizationId)), 'policy_violation');
    expect((await enter(token, named(other.organizationId))).statusCode).toBe(200);
    const bySso = await signInBySso(userId);
    expect((await enter(bySso, named(organization.organizationId))).statusCode).toBe(200);
  });

  test("another organization's configuration does not let people in", async () => {
    const other = await createSsoOrganization(app);
    const foreign = await createConfiguration(
      app,
      other.token,
      oidcSettings('https://login.example.test', other.domain),
    );
    await activateUntested(app, other.token, foreign);
    const admin = await createTestUser(app.worker, { ...organization, role: 'admin' });
    expectProblem(await enter(await signInBySso(admin, foreign)), 'policy_violation');
  });

  test('an owner without a second factor is refused', async () => {
    const { token } = await createTestSession(app.worker, organization.ownerId);
    expectProblem(await enter(token), 'policy_violation');
  });

  test.each([
    ['a passkey', { method: 'passkey' }],
    ['a password and a second factor', { method: 'password', factors: ['totp'] }],
  ] as const)('an owner gets in by %s, and all owners are informed once', async (_name, session) => {
    const second = await createTestUser(app.worker, { ...organization, role: 'owner' });
    const { token, id } = await createTestSession(app.worker, organization.ownerId, session);
    const answers = await Promise.all([enter(token), enter(token), enter(token)]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
    const mails = await query<{ userId: string }>(
      app.worker,
      sql`select user_id as "userId" from notifications
      where org_id = ${organization.organizationId} and template = 'sso-break-glass' order by user_id`,
    );
    expect(mails.map(({ userId }) => userId)).toEqual([organization.ownerId, second].sort());
    const log = (
      await app.call('/org/audit-log?action=sso.break_glass_used', { token: ownerThroughSso })
    ).json();
    expect(log.data).toMatchObject([{ actor: { id: organization.ownerId }, resource: { id } }]);
  });

  test('the active configuration can be neither disabled nor deleted', async () => {
    const path = `/org/sso/${configurationId}`;
    const token = ownerThroughSso;
    expectProblem(await app.call(path, { method: 'PATCH', token, body: { disabled: true } }), 'conflict');
    expectProblem(await app.call(path, { method: 'DELETE', token }), 'conflict');
    expect((await setPolicy(token, { enforce_sso: false })).statusCode).toBe(200);
    expect((await app.call(path, { method: 'DELETE', token })).statusCode).toBe(204);
  });

  test('API keys work as before', async () => {
    expect((await enter(organization.token)).statusCode).toBe(200);
  });
});

test('SSO satisfies require_mfa, unless the organization says otherwise', async () => {
  expect((await setPolicy(ownerThroughSso, { require_mfa: true })).statusCode).toBe(200);
  expect((await enter(ownerThroughSso)).statusCode).toBe(200);
  expectProblem(await setPolicy(ownerThroughSso, { sso_satisfies_mfa: false }), 'conflict');
});

test("another organization's SSO does not get in under require_mfa either", async () => {
  const other = await createSsoOrganization(app);
  const settings = oidcSettings('https://login.example.test', other.domain);
  const foreign = await createConfiguration(app, other.token, settings);
  await activateUntested(app, other.token, foreign);
  expect((await setPolicy(ownerThroughSso, { require_mfa: true })).statusCode).toBe(200);
  const problem = expectProblem(
    await enter(await signInBySso(organization.ownerId, foreign)),
    'policy_violation',
  );
  expect(problem).toMatchObject({ policy: 'sso_session' });
});

describe('a session of single sign-on', () => {
  test('enters the organization that made it, and no other of the person', async () => {
    const personId = await createTestUser(app.worker, { ...organization, role: 'developer' });
    const other = await createSsoOrganization(app);
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at) values (${other.organizationId}, ${personId}, 'admin', now())`,
    );
    const token = await signInBySso(personId);
    expect((await enter(token, { 'x-org-id': organization.organizationId })).statusCode).toBe(200);
    const refused = await enter(token, { 'x-org-id': other.organizationId });
    expect(expectProblem(refused, 'policy_violation')).toMatchObject({ policy: 'sso_session' });
    const { token: own } = await createTestSession(app.worker, personId);
    expect((await enter(own, { 'x-org-id': other.organizationId })).statusCode).toBe(200);
  });

  describe('changes the account', () => {
    let personId: string;
    beforeEach(async () => {
      personId = await createTestUser(app.worker, { ...organization, role: 'developer' });
    });
    const setUp = async () =>
      app.call('/auth/mfa/totp/setup', { method: 'POST', token: await signInBySso(personId), body: {} });

    test('of a person who has nothing else', async () => {
      expect((await setUp()).statusCode).toBe(200);
    });

    test('not of one with a password', async () => {
      await query(app.worker, sql`update users set password_hash = 'x' where id = ${personId}`);
      expectProblem(await setUp(), 'session_expired');
    });

    test('not of one with a passkey', async () => {
      await addFactor(personId, 'webauthn', false);
      expectProblem(await setUp(), 'session_expired');
    });

    test('not of one with a linked provider', async () => {
      await query(
        app.worker,
        sql`insert into oauth_identities (provider, issuer, subject, user_id, email, last_used_at, created_at)
        values ('google', 'https://accounts.google.test', ${personId}, ${personId}, 'x@example.test', now(), now())`,
      );
      expectProblem(await setUp(), 'session_expired');
    });

    test('not of a member of another organization', async () => {
      const other = await createSsoOrganization(app);
      await query(
        app.worker,
        sql`insert into members (org_id, user_id, role, created_at)
        values (${other.organizationId}, ${personId}, 'viewer', now())`,
      );
      expectProblem(await setUp(), 'session_expired');
    });
  });
});

test('the last factor that lets an owner in without single sign-on stays while it is enforced', async () => {
  await enforce();
  const [factor] = await query<{ id: string }>(
    app.worker,
    sql`select id from mfa_enrollments where user_id = ${organization.ownerId}`,
  );
  const { token } = await createTestSession(app.worker, organization.ownerId, { method: 'passkey' });
  await query(app.worker, sql`update users set password_hash = 'x' where id = ${organization.ownerId}`);
  const remove = () => app.call(`/auth/mfa/${factor?.id}`, { method: 'DELETE', token });
  expect(expectProblem(await remove(), 'conflict')).toMatchObject({ policy: 'enforce_sso' });
  await addFactor(organization.ownerId, 'totp', true);
  expect((await remove()).statusCode).toBe(204);
});

describe('while single sign-on is enforced, the last owner who could repair it', () => {
  let others: { userId: string; token: string }[];
  beforeEach(async () => {
    await enforce();
    others = await Promise.all(
      [1, 2].map(async () => {
        const userId = await createTestUser(app.worker, { ...organization, role: 'owner' });
        return { userId, token: await signInBySso(userId) };
      }),
    );
  });
  const call = (method: 'PATCH' | 'POST' | 'DELETE', path: string, body?: object) =>
    app.call(path, { method, token: others[0]?.token ?? '', ...(body ? { body } : {}) });
  const refuse = async (attempt: () => ReturnType<typeof call>) => {
    const problem = expectProblem(await attempt(), 'conflict');
    expect(problem).toMatchObject({ policy: 'enforce_sso', org_id: organization.organizationId });
    expect(problem.fix).toContain('passkey');
    await addFactor(others[1]?.userId ?? '', 'webauthn', false);
    const { statusCode, body } = await attempt();
    expect({ statusCode, body: statusCode < 300 ? '' : body }).toMatchObject({ body: '' });
  };

  test('keeps the role', () =>
    refuse(() => call('PATCH', `/org/members/${organization.ownerId}`, { role: 'admin' })));

  test('is not removed', () => refuse(() => call('DELETE', `/org/members/${organization.ownerId}`)));

  test('does not hand the organization over', async () => {
    const admin = await createTestUser(app.worker, { ...organization, role: 'admin' });
    const { token } = await createTestSession(app.worker, organization.ownerId, { method: 'passkey' });
    await refuse(() =>
      app.call('/org/transfer-ownership', { method: 'POST', token, body: { user_id: admin } }),
    );
  });

  test('does not delete their account', async () => {
    const { token } = await createTestSession(app.worker, organization.ownerId, { method: 'passkey' });
    await refuse(() => app.call('/user/me', { method: 'DELETE', token, body: {} }));
  });

  test('remains of two owners who leave at the same time', async () => {
    const [first, second] = others;
    await addFactor(first?.userId ?? '', 'webauthn', false);
    const remove = (userId = '') =>
      app.call(`/org/members/${userId}`, { method: 'DELETE', token: second?.token });
    const both = await Promise.all([remove(organization.ownerId), remove(first?.userId)]);
    expect(both.map(({ statusCode }) => statusCode).sort()).toEqual([204, 409]);
  });
});

test('only an owner activates a change of a configuration that an owner signs in through', async () => {
  const { organizationId, ownerId, domain, ownerSession } = organization;
  await query(
    app.worker,
    sql`insert into sso_identities (provider_id, subject, org_id, user_id, email, last_login_at, created_at)
    select provider_id, 'owner', org_id, ${ownerId}, 'x', now(), now() from sso_configurations where id = ${configurationId}`,
  );
  const body = {
    name: 'Copied',
    client_id: 'copied',
    issuer: 'https://login.example.test',
    domains: [domain],
  };
  const changed = await app.call(`/org/sso/${configurationId}`, {
    method: 'PATCH',
    token: ownerSession,
    body,
  });
  expect(changed.json().id).toBe(configurationId);
  await query(
    app.worker,
    sql`update sso_configurations set status = 'tested', tested_at = now() where replaces_id = ${configurationId}`,
  );
  const activate = (token: string) =>
    app.call(`/org/sso/${configurationId}/activate`, { method: 'POST', token });
  const adminId = await createTestUser(app.worker, { organizationId, role: 'admin' });
  const { token: admin } = await createTestSession(app.worker, adminId);
  for (const token of [admin, organization.token]) expectProblem(await activate(token), 'permission_denied');
  expect((await activate(ownerSession)).statusCode).toBe(200);
});
