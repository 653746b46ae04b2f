import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Insertable } from 'kysely';
import type { Tables } from '../../platform/database/tables.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { setPolicies, type TestPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let organization: TestOrganization;
let owner: string;
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  owner = (await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] })).token;
});

const patch = (body: unknown, token = owner, headers = {}) =>
  app.call('/org/policies', { method: 'PATCH', token, body, headers });

describe('the policies of an organization', () => {
  test('have defaults, and are changed one by one', async () => {
    const defaults = {
      object: 'policies',
      require_mfa: false,
      enforce_sso: false,
      sso_satisfies_mfa: true,
      session_max_age_hours: null,
      allowed_cidrs: [],
      max_recipients_per_message: null,
      allowed_recipient_domains: [],
      blocked_recipient_domains: [],
      daily_send_cap_per_inbox: null,
      require_send_approval: 'off',
      after_alarm: 'approval',
      auto_submitted_header: true,
      support_access: 'allowed',
      support_access_until: null,
    };
    expect((await app.call('/org/policies', { token: owner })).json()).toEqual(defaults);
    expect((await patch({ session_max_age_hours: 8 })).json()).toEqual({
      ...defaults,
      session_max_age_hours: 8,
    });
    expect((await patch({ require_mfa: true })).json()).toMatchObject({
      session_max_age_hours: 8,
      require_mfa: true,
    });
    expect((await patch({ session_max_age_hours: null })).json()).toEqual({ ...defaults, require_mfa: true });
  });

  test('hold for two concurrent changes', async () => {
    await Promise.all([patch({ session_max_age_hours: 8 }), patch({ require_mfa: true })]);
    expect((await app.call('/org/policies', { token: owner })).json()).toMatchObject({
      require_mfa: true,
      session_max_age_hours: 8,
    });
  });

  test('take effect with the next request', async () => {
    const userId = await createTestUser(app.worker, { ...organization, role: 'developer' });
    const { token } = await createTestSession(app.worker, userId);
    expect((await app.call('/org', { token })).statusCode).toBe(200);
    await patch({ require_mfa: true });
    expectProblem(await app.call('/org', { token }), 'policy_violation');
  });

  test('are refused if they would lock the caller out', async () => {
    const weak = await createTestSession(app.worker, organization.ownerId);
    expect(expectProblem(await patch({ require_mfa: true }, weak.token), 'conflict')).toMatchObject({
      policy: 'require_mfa',
    });
    const body = { allowed_cidrs: ['198.51.100.0/24'] };
    expect(expectProblem(await patch(body), 'conflict')).toMatchObject({ policy: 'allowed_cidrs' });
    expect((await patch(body, owner, { 'x-forwarded-for': '198.51.100.1' })).statusCode).toBe(200);
    expectProblem(await app.call('/org', { token: owner }), 'policy_violation');
  });

  test.each([
    '198.51.100.0/33',
    '198.51.100',
    '2001:db8::/129',
    'fe80::1%eth0',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    'x',
    '',
  ])('reject the range %j', async (range) => {
    const problem = expectProblem(await patch({ allowed_cidrs: ['192.0.2.1', range] }), 'validation_error');
    expect(problem.errors).toMatchObject([{ path: 'allowed_cidrs[1]' }]);
  });

  test.each(['developer', 'viewer'] as const)('are not available to a %s', async (role) => {
    const userId = await createTestUser(app.worker, { ...organization, role });
    const { token } = await createTestSession(app.worker, userId);
    expectProblem(await app.call('/org/policies', { token }), 'permission_denied');
    expectProblem(await patch({ require_mfa: false }, token), 'permission_denied');
  });
});

describe('a key with policies:manage', () => {
  const STRICT: Required<Omit<Insertable<Tables['organization_policies']>, 'org_id' | 'updated_at'>> = {
    require_mfa: true,
    enforce_sso: true,
    sso_satisfies_mfa: false,
    session_max_age_hours: 8,
    allowed_cidrs: ['127.0.0.0/8'],
    max_recipients_per_message: 5,
    allowed_recipient_domains: ['people.example'],
    blocked_recipient_domains: ['rivals.example'],
    daily_send_cap_per_inbox: 10,
    require_send_approval: 'all',
    after_alarm: 'approval',
    auto_submitted_header: true,
    support_access: 'ask',
    support_access_until: null,
  };
  const WEAKER: Record<string, unknown> = {
    require_mfa: false,
    enforce_sso: false,
    sso_satisfies_mfa: true,
    session_max_age_hours: null,
    allowed_cidrs: ['126.0.0.0/7'],
    max_recipients_per_message: 6,
    allowed_recipient_domains: ['people.example', 'more.example'],
    blocked_recipient_domains: [],
    daily_send_cap_per_inbox: 11,
    require_send_approval: 'external',
    after_alarm: 'none',
    auto_submitted_header: false,
    support_access: 'allowed',
    support_access_until: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const set = (policies: TestPolicies) => setPolicies(app.worker, organization.organizationId, policies);
  const read = async () => (await app.call('/org/policies', { token: organization.token })).json();

  test('weakens none of them: each is a 403 that changes nothing', async () => {
    await set(STRICT);
    const before = await read();
    expect(['object', ...Object.keys(WEAKER)].sort()).toEqual(Object.keys(before).sort());
    for (const [policy, value] of Object.entries(WEAKER)) {
      const problem = expectProblem(
        await patch({ [policy]: value }, organization.token),
        'permission_denied',
      );
      expect(problem).toMatchObject({ policy, detail: expect.stringContaining(policy) });
    }
    expect(await read()).toEqual(before);
  });

  test('does not weaken one policy by making another one stricter in the same request', async () => {
    await set({ require_send_approval: 'all' });
    const body = { require_send_approval: 'off', max_recipients_per_message: 1 };
    expectProblem(await patch(body, organization.token), 'permission_denied');
    expect(await read()).toMatchObject({ require_send_approval: 'all', max_recipients_per_message: null });
  });

  test('makes them stricter, and repeats what is set', async () => {
    expect((await patch({ require_send_approval: 'external' }, organization.token)).statusCode).toBe(200);
    expect((await patch({ require_send_approval: 'all' }, organization.token)).statusCode).toBe(200);
    expect((await patch({ require_send_approval: 'all' }, organization.token)).statusCode).toBe(200);
    expect((await patch({ require_send_approval: 'off' })).statusCode).toBe(200);
  });
});

describe('the audit log', () => {
  const list = async (query = '', token = owner) =>
    (await app.call(`/org/audit-log${query}`, { token })).json().data;

  test('records who changed what, from where, with which credential', async () => {
    const { token, id } = await createTestSession(app.worker, organization.ownerId);
    await patch({ session_max_age_hours: 8 }, token, { 'x-forwarded-for': '198.51.100.1' });
    expect(await list()).toMatchObject([
      {
        action: 'policies.updated',
        actor: { kind: 'user', id: organization.ownerId, name: expect.stringContaining('@example.test') },
        credential_id: id,
        resource: { type: 'organization', id: organization.organizationId },
        details: { sessionMaxAgeHours: 8, previous: { sessionMaxAgeHours: null } },
        ip: '198.51.100.1',
        request_id: expect.stringMatching(/^req_/),
      },
    ]);
  });

  test('shows the values that a change replaced, and none that it left', async () => {
    await patch({ require_send_approval: 'external', daily_send_cap_per_inbox: 50 });
    await patch({ require_send_approval: 'all', daily_send_cap_per_inbox: 50 });
    const [last] = await list();
    expect(last.details).toEqual({
      requireSendApproval: 'all',
      dailySendCapPerInbox: 50,
      previous: { requireSendApproval: 'external' },
    });
  });

  test('names resources as they are called now', async () => {
    const key = await app.call('/api-keys', {
      method: 'POST',
      token: organization.token,
      body: { name: 'Support bot' },
    });
    const [created] = await list();
    expect(created).toMatchObject({
      action: 'api_key.created',
      resource: { id: key.json().id, name: 'Support bot' },
    });
    await app.call('/org', { method: 'PATCH', token: organization.token, body: { name: 'Engines' } });
    const [renamed] = await list();
    expect(renamed).toMatchObject({ resource: { type: 'organization', name: 'Engines' } });
    expect(renamed.details.previous.name).not.toBe('Engines');
  });

  test('records keys, and filters', async () => {
    const key = await app.call('/api-keys', {
      method: 'POST',
      token: organization.token,
      body: { name: 'Bot' },
    });
    const { id, token } = key.json();
    await app.call(`/api-keys/${id}`, { method: 'DELETE', token: organization.token });
    await patch({ session_max_age_hours: 8 });
    expect(
      (await list(`?resource_id=${id}&order=asc`)).map(({ action }: { action: string }) => action),
    ).toEqual(['api_key.created', 'api_key.revoked']);
    expect(await list(`?actor_id=${organization.keyId}&action=api_key.revoked`)).toHaveLength(1);
    expect(await list(`?after=2026-01-01T00:00:00Z&before=2026-01-02T00:00:00Z`)).toEqual([]);
    expect(await list('?limit=2')).toHaveLength(2);
    expect(JSON.stringify(await list())).not.toContain(token);
  });

  test('is not available to a developer', async () => {
    const userId = await createTestUser(app.worker, { ...organization, role: 'developer' });
    const { token } = await createTestSession(app.worker, userId);
    expectProblem(await app.call('/org/audit-log', { token }), 'permission_denied');
  });
});

describe('members', () => {
  const join = async (role: 'owner' | 'admin' | 'developer' | 'viewer') => {
    const userId = await createTestUser(app.worker, { ...organization, role });
    return { userId, token: (await createTestSession(app.worker, userId)).token };
  };
  const change = (userId: string, role: string, token = owner) =>
    app.call(`/org/members/${userId}`, { method: 'PATCH', token, body: { role } });
  const remove = (userId: string, token = owner) =>
    app.call(`/org/members/${userId}`, { method: 'DELETE', token });

  test('are listed with their roles', async () => {
    const { userId, token } = await join('admin');
    const { data } = (await app.call('/org/members?order=asc', { token })).json();
    expect(data).toMatchObject([
      { user_id: organization.ownerId, role: 'owner' },
      { user_id: userId, role: 'admin' },
    ]);
    expectProblem(
      await app.call('/org/members', { token: (await join('developer')).token }),
      'permission_denied',
    );
  });

  test('get another role, which holds with their next request', async () => {
    const { userId, token } = await join('viewer');
    expectProblem(await app.call('/inboxes', { method: 'POST', token, body: {} }), 'permission_denied');
    expect((await change(userId, 'developer')).json()).toMatchObject({ user_id: userId, role: 'developer' });
    expect((await app.call('/inboxes', { method: 'POST', token, body: {} })).statusCode).toBe(201);
  });

  test('lose access when they are removed', async () => {
    const { userId, token } = await join('admin');
    expect((await remove(userId)).statusCode).toBe(204);
    expectProblem(await app.call('/org', { token }), 'permission_denied');
    expectProblem(await remove(userId), 'not_found');
  });

  test('cannot raise themselves or others above their own role', async () => {
    const admin = await join('admin');
    const viewer = await join('viewer');
    expectProblem(await change(admin.userId, 'owner', admin.token), 'permission_denied');
    expectProblem(await change(viewer.userId, 'owner', admin.token), 'permission_denied');
    expectProblem(await change(organization.ownerId, 'viewer', admin.token), 'permission_denied');
    expectProblem(await remove(organization.ownerId, admin.token), 'permission_denied');
    expectProblem(await change(viewer.userId, 'admin', (await join('developer')).token), 'permission_denied');
    expectProblem(await change(viewer.userId, 'owner', organization.token), 'permission_denied');
    for (const role of ['root', '', null, ['owner']])
      expectProblem(await change(viewer.userId, role as string), 'validation_error');
  });

  test('become owners, and owners leave, only with a fresh sign-in', async () => {
    const viewer = await join('viewer');
    const second = await join('owner');
    const old = await createTestSession(app.worker, organization.ownerId, {
      authenticatedAt: new Date(Date.now() - 11 * 60_000),
    });
    const invite = (token: string) =>
      app.call('/org/invitations', {
        method: 'POST',
        token,
        body: { email: `${viewer.userId}@people.example`, role: 'owner' },
      });
    expectProblem(await change(viewer.userId, 'owner', old.token), 'session_expired');
    expectProblem(await change(second.userId, 'viewer', old.token), 'session_expired');
    expectProblem(await remove(second.userId, old.token), 'session_expired');
    expectProblem(await invite(old.token), 'session_expired');
    expect((await change(viewer.userId, 'admin', old.token)).statusCode).toBe(200);
    expect((await invite(owner)).statusCode).toBe(201);
    expect((await change(viewer.userId, 'owner')).statusCode).toBe(200);
  });

  test('always include an owner, also after two concurrent removals', async () => {
    expectProblem(await change(organization.ownerId, 'admin'), 'conflict');
    expectProblem(await remove(organization.ownerId), 'conflict');
    const second = await join('owner');
    const statuses = await Promise.all([
      remove(organization.ownerId, second.token),
      remove(second.userId, owner),
    ]);
    expect(statuses.map(({ statusCode }) => statusCode).filter((status) => status === 204)).toHaveLength(1);
  });

  test('of another organization are not found', async () => {
    const foreign = await createOrganization(app.worker);
    expectProblem(await change(foreign.ownerId, 'viewer'), 'not_found');
    expectProblem(await remove(foreign.ownerId), 'not_found');
  });

  test('who are developers see and revoke only the keys that they created', async () => {
    const developer = await join('developer');
    const body = { name: 'Mine', permissions: ['messages:read', 'keys:manage'] };
    const own = (await app.call('/api-keys', { method: 'POST', token: developer.token, body })).json();
    expect(own.created_by_user_id).toBe(developer.userId);
    const child = (
      await app.call('/api-keys', { method: 'POST', token: own.token, body: { name: 'Child' } })
    ).json();
    expect(child.created_by_user_id).toBe(developer.userId);
    const { data } = (await app.call('/api-keys', { token: developer.token })).json();
    expect(data.map(({ id }: { id: string }) => id).sort()).toEqual([own.id, child.id].sort());
    const foreign = `/api-keys/${organization.keyId}`;
    expectProblem(await app.call(foreign, { token: developer.token }), 'not_found');
    expectProblem(await app.call(foreign, { method: 'DELETE', token: developer.token }), 'not_found');
    const tooMuch = { name: 'Root', permissions: ['policies:manage'] };
    expectProblem(
      await app.call('/api-keys', { method: 'POST', token: developer.token, body: tooMuch }),
      'permission_denied',
    );
  });
});
