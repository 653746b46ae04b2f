import { describe, expect, test } from '@jest/globals';
import type { LightMyRequestResponse } from 'fastify';
import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { newId } from '../../platform/ids.ts';
import { createAccountQuickly, signIn } from '../support/accounts.ts';
import { eventually } from '../support/eventually.ts';
import { createKey, createOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { addStaffMember, createStaff } from '../support/staff.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

const post = (path: string, token: string, body: object = {}) =>
  app.call(path, { method: 'POST', token, body: { note: 'Ticket 4711', ...body } });
const get = (path: string, token: string) => app.call(path, { token });
const mailsOf = async (userId: string) =>
  (
    await query<{ template: string }>(
      app.worker,
      sql`select template from notifications where user_id = ${userId} order by id`,
    )
  ).map(({ template }) => template);
const logOf = async (organizationId: string) =>
  query(
    app.worker,
    sql`select action, actor_kind as kind, actor_id as actor, reason, resource_id as resource, details from audit_entries
    where org_id = ${organizationId} and actor_kind = 'staff' order by id`,
  );

/** Adds a confirmed authenticator app and a recovery code. */
async function addFactors(userId: string): Promise<void> {
  await query(
    app.worker,
    sql`insert into mfa_enrollments (id, user_id, type, name, confirmed_at, created_at)
    values (${newId('mfaEnrollment')}, ${userId}, 'totp', 'Phone', now(), now()) returning id`,
  );
  await query(
    app.worker,
    sql`insert into mfa_recovery_codes (user_id, code_hash, created_at) values (${userId}, '\\x00', now()) returning user_id`,
  );
}

/** Holds the lock of staff until all requests wait for it, after their checks of the caller; then releases it. */
async function atTheSameTime(
  start: () => Promise<LightMyRequestResponse>[],
): Promise<LightMyRequestResponse[]> {
  const countWaiting = async () =>
    (
      await query<{ count: number }>(
        app.worker,
        sql`select count(*)::int as count from pg_locks where locktype = 'advisory' and not granted`,
      )
    )[0]?.count;
  const requests = await app.worker.systemTransaction(async ({ db }) => {
    await lockKey(db, 'staff');
    const started = start();
    await eventually(async () => expect(await countWaiting()).toBeGreaterThanOrEqual(started.length));
    return { started };
  });
  return Promise.all(requests.started);
}

describe('people', () => {
  test('are found by part of address or name, id, status, organization and staff, page by page', async () => {
    const { token, userId: staffId } = await createStaff(app, { role: 'support' });
    const [first, second] = [await createAccountQuickly(app), await createAccountQuickly(app)];
    const find = async (query: string) => (await get(`/admin/users?${query}`, token)).json();
    const ids = async (query: string) => (await find(query)).data.map(({ id }: { id: string }) => id);
    expect(await ids(`query=${first.email.slice(1, 12)}`)).toEqual([first.userId]);
    expect(await ids(`query=${second.userId}`)).toEqual([second.userId]);
    expect(await ids('query=%25')).toEqual([]);
    expect(await ids(`query=${staffId}&staff=true`)).toEqual([staffId]);
    expect(await ids(`query=${staffId}&staff=false`)).toEqual([]);
    expect(await ids(`org_id=${first.organizationId}`)).toEqual([first.userId]);
    expect(await ids(`query=${first.email}&status=suspended`)).toEqual([]);
    const name = `Lovelace ${newId('request')}`;
    await query(
      app.worker,
      sql`update users set name = ${name} where id = any(${[first.userId, second.userId]}) returning id`,
    );
    const byName = `query=${encodeURIComponent(name.slice(2))}&limit=1`;
    const page = await find(byName);
    expect(page).toMatchObject({ has_more: true, data: [{ id: second.userId, name }] });
    const next = await find(`${byName}&cursor=${page.next_cursor}`);
    expect(next.data).toMatchObject([{ id: first.userId, organization_count: 1, staff_role: null }]);
  });

  test('are shown with organizations, sessions and factors, without a secret', async () => {
    const { token } = await createStaff(app, { role: 'support' });
    const account = await createAccountQuickly(app);
    await addFactors(account.userId);
    const response = await get(`/admin/users/${account.userId}`, token);
    expect(response.json()).toMatchObject({
      id: account.userId,
      email: account.email,
      status: 'active',
      email_verified: true,
      mfa_enabled: true,
      organizations: [{ org_id: account.organizationId, role: 'owner' }],
      sessions: [{ kind: 'full', method: 'password', ip: '192.0.2.1' }],
      factors: [{ type: 'totp', name: 'Phone' }],
    });
    expect(response.body).not.toMatch(/secret|hash|argon/);
    expectProblem(await get(`/admin/users/${newId('user')}`, token), 'not_found');
  });

  test('are suspended and reinstated: sessions end, keys work, the person and all their organizations know', async () => {
    const { token, userId: staffId } = await createStaff(app);
    const account = await createAccountQuickly(app);
    const other = await createOrganization(app.worker);
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at)
      values (${other.organizationId}, ${account.userId}, 'viewer', now()) returning user_id`,
    );
    const path = `/admin/users/${account.userId}`;
    expect((await post(`${path}/suspend`, token)).json()).toMatchObject({
      status: 'suspended',
      sessions: [],
    });
    expectProblem(await get('/user/me', account.token), 'unauthenticated');
    expect((await signIn(app, account.email)).statusCode).toBe(401);
    expect((await get('/org', other.token)).statusCode).toBe(200);
    expectProblem(await post(`${path}/suspend`, token), 'conflict');
    const entry = { kind: 'staff', actor: staffId, reason: 'Ticket 4711', resource: account.userId };
    for (const organizationId of [account.organizationId, other.organizationId])
      expect(await logOf(organizationId)).toEqual([
        { ...entry, action: 'user.suspended', details: { sessions_ended: 1 } },
      ]);
    expect((await post(`${path}/reinstate`, token)).json()).toMatchObject({ status: 'active' });
    expectProblem(await post(`${path}/reinstate`, token), 'conflict');
    expect((await signIn(app, account.email)).statusCode).toBe(200);
    expect(await mailsOf(account.userId)).toEqual(['account-suspended', 'account-reinstated']);
    const log = (await get(`/admin/audit-log?resource_id=${account.userId}`, token)).json().data;
    expect(log.map(({ action }: { action: string }) => action)).toEqual([
      'user.reinstated',
      'user.suspended',
    ]);
  });

  test('lose their sessions and factors by admins, not by support', async () => {
    const [support, admin] = [await createStaff(app, { role: 'support' }), await createStaff(app)];
    const account = await createAccountQuickly(app);
    await addFactors(account.userId);
    const path = `/admin/users/${account.userId}`;
    expectProblem(await post(`${path}/revoke-sessions`, support.token), 'permission_denied');
    expect((await get('/user/me', account.token)).statusCode).toBe(200);
    expect((await post(`${path}/revoke-sessions`, admin.token)).json()).toEqual({
      object: 'session_revocation',
      revoked: 1,
    });
    expectProblem(await get('/user/me', account.token), 'unauthenticated');
    expectProblem(await post(`${path}/reset-mfa`, support.token), 'permission_denied');
    expectProblem(await post(`${path}/suspend`, support.token), 'permission_denied');

    const session = await createTestSession(app.worker, account.userId);
    expect((await post(`${path}/reset-mfa`, admin.token)).json()).toMatchObject({
      mfa_enabled: false,
      factors: [],
      sessions: [],
    });
    expectProblem(await get('/user/me', session.token), 'unauthenticated');
    const codes = await query(
      app.worker,
      sql`select from mfa_recovery_codes where user_id = ${account.userId}`,
    );
    expect(codes).toEqual([]);
    expect((await signIn(app, account.email)).json()).toMatchObject({ token: expect.any(String) });
    expectProblem(await post(`${path}/reset-mfa`, admin.token), 'conflict');
    expect(await mailsOf(account.userId)).toEqual(['sessions-ended-by-staff', 'mfa-reset-by-staff']);
  });

  describe('who are the last that get past the single sign-on of an organization', () => {
    const CHANGES = ['suspend', 'reset-mfa'] as const;
    const arrangeOwner = async () => {
      const account = await createAccountQuickly(app);
      await addFactors(account.userId);
      await setPolicies(app.worker, account.organizationId, { enforce_sso: true });
      return { ...account, path: `/admin/users/${account.userId}` };
    };
    const addOwner = async (organizationId: string) => {
      const userId = await createTestUser(app.worker, { organizationId });
      await query(app.worker, sql`update users set password_hash = 'x' where id = ${userId} returning id`);
      await addFactors(userId);
      return userId;
    };

    test.each(CHANGES)('cannot be changed by %s, unless staff accept it, which is logged', async (action) => {
      const { token } = await createStaff(app);
      const { organizationId, userId, path, token: session } = await arrangeOwner();
      const refused = await post(`${path}/${action}`, token);
      expectProblem(refused, 'conflict');
      expect(refused.json()).toMatchObject({
        policy: 'enforce_sso',
        org_id: organizationId,
        fix: expect.stringContaining('leave_without_break_glass'),
      });
      // Nothing has happened.
      expect((await get(path, token)).json()).toMatchObject({ status: 'active', mfa_enabled: true });
      expect(await logOf(organizationId)).toEqual([]);
      expect((await get('/user/me', session)).statusCode).not.toBe(401);
      expect((await post(`${path}/${action}`, token, { leave_without_break_glass: true })).statusCode).toBe(
        200,
      );
      expect(await logOf(organizationId)).toMatchObject([
        { resource: userId, details: { left_without_break_glass: [organizationId] } },
      ]);
    });

    test.each(CHANGES)(
      'can be changed by %s while another owner gets in, or if none did before',
      async (action) => {
        const { token } = await createStaff(app);
        const first = await arrangeOwner();
        const other = await addOwner(first.organizationId);
        expect((await post(`${first.path}/${action}`, token)).statusCode).toBe(200);
        expect((await logOf(first.organizationId))[0]).not.toHaveProperty([
          'details',
          'left_without_break_glass',
        ]);
        const path = `/admin/users/${other}/${action}`;
        expectProblem(await post(path, token), 'conflict');
        expect((await post(path, token, { leave_without_break_glass: true })).statusCode).toBe(200);
        const late = await createTestUser(app.worker, { organizationId: first.organizationId });
        expect((await post(`/admin/users/${late}/suspend`, token)).statusCode).toBe(200);
      },
    );

    test('suspended at the same time, one remains', async () => {
      const { token } = await createStaff(app);
      const first = await arrangeOwner();
      const other = await addOwner(first.organizationId);
      const responses = await Promise.all(
        [first.userId, other].map((userId) => post(`/admin/users/${userId}/suspend`, token)),
      );
      expect(responses.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409]);
    });
  });

  test('who are staff are changed by other admins only', async () => {
    const [support, admin, target] = [
      await createStaff(app, { role: 'support' }),
      await createStaff(app),
      await createStaff(app),
    ];
    const suspend = (token: string, userId: string) => post(`/admin/users/${userId}/suspend`, token);
    expectProblem(await suspend(admin.token, admin.userId), 'conflict');
    expectProblem(await post(`/admin/users/${admin.userId}/reset-mfa`, admin.token), 'conflict');
    expectProblem(
      await post(`/admin/users/${target.userId}/revoke-sessions`, support.token),
      'permission_denied',
    );
    expect((await suspend(admin.token, target.userId)).statusCode).toBe(200);
    expectProblem(await get('/admin/me', target.token), 'unauthenticated');
  });

  test('two admins who suspend each other at the same time leave one', async () => {
    const [first, second] = [await createStaff(app), await createStaff(app)];
    const answers = await atTheSameTime(() => [
      post(`/admin/users/${second.userId}/suspend`, first.token),
      post(`/admin/users/${first.userId}/suspend`, second.token),
    ]);
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    const [left] = await query<{ count: number }>(
      app.worker,
      sql`select count(*)::int as count from users
      where id = any(${[first.userId, second.userId]}) and status = 'active'`,
    );
    expect(left).toEqual({ count: 1 });
  });
});

describe('staff members', () => {
  test('are added, changed and removed by admins, who inform them; none changes themselves', async () => {
    const [admin, support] = [await createStaff(app), await createStaff(app, { role: 'support' })];
    const account = await createAccountQuickly(app);
    const body = { email: account.email.toUpperCase(), role: 'support' };
    const path = `/admin/staff/${account.userId}`;
    const patch = (role: string, to = path) =>
      app.call(to, { method: 'PATCH', token: admin.token, body: { role, note: 'Promoted' } });
    expectProblem(await post('/admin/staff', support.token, body), 'permission_denied');
    expectProblem(await get('/admin/staff', support.token), 'permission_denied');
    expectProblem(
      await post('/admin/staff', admin.token, { ...body, email: 'none@people.example' }),
      'not_found',
    );

    expect((await post('/admin/staff', admin.token, body)).json()).toMatchObject({
      user_id: account.userId,
      role: 'support',
      active: true,
      mfa_enabled: false,
      created_by: admin.userId,
    });
    expectProblem(await post('/admin/staff', admin.token, body), 'already_exists');
    expect((await patch('admin')).json()).toMatchObject({ role: 'admin' });
    expectProblem(await patch('admin'), 'conflict');
    expectProblem(await patch('support', `/admin/staff/${admin.userId}`), 'conflict');
    expectProblem(await patch('support', `/admin/staff/${newId('user')}`), 'not_found');
    const listed = (await get('/admin/staff?limit=100', admin.token)).json().data;
    expect(listed.map((member: { user_id: string }) => member.user_id)).toContain(account.userId);

    const remove = (userId: string) =>
      app.call(`/admin/staff/${userId}?note=Left`, { method: 'DELETE', token: admin.token });
    const { token } = await createTestSession(app.worker, account.userId, { factors: ['totp'] });
    expect((await get('/admin/me', token)).statusCode).toBe(200);
    expect((await remove(account.userId)).statusCode).toBe(204);
    expectProblem(await get('/admin/me', token), 'permission_denied');
    expectProblem(await remove(account.userId), 'not_found');
    expectProblem(await remove(admin.userId), 'conflict');
    expect(await mailsOf(account.userId)).toEqual(Array(3).fill('staff-role-changed'));
    const log = (await get(`/admin/audit-log?resource_id=${account.userId}`, admin.token)).json().data;
    expect(log.map((entry: { action: string; details: object }) => [entry.action, entry.details])).toEqual([
      ['staff.removed', { from: 'admin', to: null }],
      ['staff.role_changed', { from: 'support', to: 'admin' }],
      ['staff.added', { from: null, to: 'support' }],
    ]);
  });

  test('two admins who remove each other at the same time leave one', async () => {
    const [first, second] = [await createStaff(app), await createStaff(app)];
    const remove = (token: string, userId: string) =>
      app.call(`/admin/staff/${userId}?note=Left`, { method: 'DELETE', token });
    const answers = await atTheSameTime(() => [
      remove(first.token, second.userId),
      remove(second.token, first.userId),
    ]);
    expect(answers.filter(({ statusCode }) => statusCode === 204)).toHaveLength(1);
  });

  test('cannot be a suspended account', async () => {
    const { token } = await createStaff(app);
    const userId = await createTestUser(app.worker);
    await query(app.worker, sql`update users set status = 'suspended' where id = ${userId} returning id`);
    const body = { email: `${userId}@example.test`, role: 'admin' };
    expectProblem(await post('/admin/staff', token, body), 'not_found');
    await addStaffMember(app.worker, userId, 'admin');
    const listed = (await get('/admin/staff?limit=100', token)).json().data;
    expect(listed.find((member: { user_id: string }) => member.user_id === userId)).toMatchObject({
      active: false,
    });
  });
});

describe('API keys', () => {
  test('are listed by organization, creator, status and last use', async () => {
    const { token } = await createStaff(app, { role: 'support' });
    const organization = await createOrganization(app.worker);
    const { organizationId, keyId, ownerId } = organization;
    const second = await createKey(app.worker, { organizationId, expiresAt: new Date(Date.now() - 1_000) });
    await query(
      app.worker,
      sql`update api_keys set created_by_user_id = ${ownerId}, last_used_at = now() where id = ${keyId} returning id`,
    );
    const ids = async (query: string) =>
      (await get(`/admin/keys?org_id=${organizationId}&${query}`, token))
        .json()
        .data.map(({ id }: { id: string }) => id);
    expect(await ids('')).toEqual([second.keyId, keyId]);
    expect(await ids('order=asc&limit=1')).toEqual([keyId]);
    expect(await ids(`created_by_user_id=${ownerId}`)).toEqual([keyId]);
    expect(await ids('status=expired')).toEqual([second.keyId]);
    expect(await ids(`last_used_before=${new Date(Date.now() - 60_000).toISOString()}`)).toEqual([
      second.keyId,
    ]);
    const response = await get(`/admin/keys?org_id=${organizationId}`, token);
    expect(response.json().data[1]).toMatchObject({
      org_id: organizationId,
      status: 'active',
      name: 'Test key',
    });
    expect(response.body).not.toContain(organization.token);
  });

  test('are revoked by admins, with their children, and the owners know', async () => {
    const [support, admin] = [await createStaff(app, { role: 'support' }), await createStaff(app)];
    const { organizationId, keyId, token, ownerId } = await createOrganization(app.worker);
    const child = (await app.call('/api-keys', { method: 'POST', token, body: { name: 'Child' } })).json();
    const path = `/admin/keys/${keyId}/revoke`;
    expectProblem(await post(path, support.token), 'permission_denied');
    expect((await post(path, admin.token)).json()).toMatchObject({ id: keyId, status: 'revoked' });
    expectProblem(await get('/org', token), 'unauthenticated');
    expect((await get('/org', child.token)).statusCode).toBe(200);
    expectProblem(await post(path, admin.token, { children: true }), 'conflict');

    const parent = await createKey(app.worker, { organizationId });
    await query(
      app.worker,
      sql`update api_keys set created_by_key_id = ${parent.keyId} where id = ${child.id} returning id`,
    );
    expect(
      (await post(`/admin/keys/${parent.keyId}/revoke`, admin.token, { children: true })).statusCode,
    ).toBe(200);
    expectProblem(await get('/org', child.token), 'unauthenticated');
    expect(await logOf(organizationId)).toMatchObject([
      { action: 'api_key.revoked', resource: keyId, reason: 'Ticket 4711' },
      { action: 'api_key.revoked', resource: parent.keyId, details: { revoke_children: true } },
    ]);
    expect(await mailsOf(ownerId)).toEqual(Array(2).fill('api-key-revoked-by-staff'));
  });
});
