import { beforeAll, describe, expect, test } from '@jest/globals';
import { type RawBuilder, sql } from 'kysely';
import type { ErrorCode } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { setPolicies, type TestPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});

const execute = (statement: RawBuilder<unknown>) => query(app.worker, statement);

async function signIn(role?: 'owner' | 'viewer' | 'developer') {
  const userId = await createTestUser(app.worker, {
    organizationId: organization.organizationId,
    ...(role ? { role } : {}),
  });
  return { userId, ...(await createTestSession(app.worker, userId)) };
}

/** Sets policies of the organization; the others are off. */
const limit = (policies: TestPolicies = {}) =>
  setPolicies(app.worker, organization.organizationId, {
    require_mfa: false,
    session_max_age_hours: null,
    allowed_cidrs: [],
    ...policies,
  });

describe('a session', () => {
  test('acts in the only organization of its person, with the permissions of their role', async () => {
    const viewer = await signIn('viewer');
    const read = await app.call('/org', { token: viewer.token });
    expect(read.json()).toMatchObject({ id: organization.organizationId });
    const write = await app.call('/inboxes', { method: 'POST', token: viewer.token, body: {} });
    expectProblem(write, 'permission_denied');
    const owner = await signIn();
    expect((await app.call('/inboxes', { method: 'POST', token: owner.token, body: {} })).statusCode).toBe(
      201,
    );
  });

  test('names an organization if its person belongs to several', async () => {
    const { userId, token } = await signIn('viewer');
    const other = await createOrganization(app.worker);
    await execute(
      sql`insert into members (org_id, user_id, role, created_at)
        values (${other.organizationId}, ${userId}, 'owner', now())`,
    );
    expectProblem(await app.call('/org', { token }), 'organization_required');
    const named = await app.call('/org', { token, headers: { 'x-org-id': other.organizationId } });
    expect(named.json()).toMatchObject({ id: other.organizationId });
    for (const id of [newId('organization'), 'x', "o'; --"])
      expectProblem(await app.call('/org', { token, headers: { 'x-org-id': id } }), 'not_found');
  });

  test('reaches no organization its person does not belong to', async () => {
    const { token } = await signIn();
    const foreign = await createOrganization(app.worker);
    const inbox = await createInbox(app.worker, foreign);
    expectProblem(
      await app.call('/org', { token, headers: { 'x-org-id': foreign.organizationId } }),
      'not_found',
    );
    expectProblem(await app.call(`/inboxes/${inbox.id}`, { token }), 'not_found');
  });

  test('loses access with the membership', async () => {
    const { userId, token } = await signIn();
    await execute(sql`delete from members where user_id = ${userId}`);
    expectProblem(await app.call('/org', { token }), 'permission_denied');
  });

  test.each([
    ['is revoked', sql`revoked_at = now()`, 'unauthenticated'],
    ['is expired', sql`expires_at = date_trunc('milliseconds', now())`, 'session_expired'],
  ] as [string, RawBuilder<unknown>, ErrorCode][])('is rejected if it %s', async (_case, change, code) => {
    const { id, token } = await signIn();
    await execute(sql`update sessions set ${change} where id = ${id}`);
    expectProblem(await app.call('/org', { token }), code);
    expectProblem(await app.call('/user/me/sessions', { token }), code);
  });

  test.each([
    ['suspended', sql`status = 'suspended'`],
    ['deleted', sql`deleted_at = now()`],
  ])('is rejected if its person is %s', async (_case, change) => {
    const { userId, token } = await signIn();
    await execute(sql`update users set ${change} where id = ${userId}`);
    expectProblem(await app.call('/org', { token }), 'unauthenticated');
  });

  test.each(['sst_', `sst_${'0'.repeat(43)}`, `sst_${'0'.repeat(44)}`, `SST_${'0'.repeat(43)}`])(
    'is rejected if its token is %s',
    async (token) => {
      expectProblem(await app.call('/org', { token }), 'unauthenticated');
    },
  );

  test('is stored only as a hash', async () => {
    const { token } = await signIn();
    const rows = await execute(sql`select s::text as row from sessions s`);
    expect(JSON.stringify(rows)).not.toContain(token);
  });
});

describe('the policies of the organization', () => {
  test('reject a session without a second factor, and accept one with it', async () => {
    const { userId, token } = await signIn();
    const strong = await createTestSession(app.worker, userId, { factors: ['totp'] });
    const passkey = await createTestSession(app.worker, userId, { method: 'passkey' });
    await limit({ require_mfa: true });
    try {
      expect(expectProblem(await app.call('/org', { token }), 'policy_violation')).toMatchObject({
        policy: 'require_mfa',
      });
      for (const accepted of [strong, passkey])
        expect((await app.call('/org', { token: accepted.token })).statusCode).toBe(200);
      expect((await app.call('/user/me/sessions', { token })).statusCode).toBe(200);
    } finally {
      await limit();
    }
  });

  test('end a session that is too old', async () => {
    const { id, token } = await signIn();
    await limit({ session_max_age_hours: 2 });
    try {
      expect((await app.call('/org', { token })).statusCode).toBe(200);
      await execute(sql`update sessions set authenticated_at = now() - interval '3 hours' where id = ${id}`);
      expectProblem(await app.call('/org', { token }), 'session_expired');
    } finally {
      await limit();
    }
  });

  test('reject sessions and keys from other networks', async () => {
    const { token } = await signIn();
    await limit({ allowed_cidrs: ['198.51.100.0/24', '2001:db8::/32'] });
    try {
      for (const credential of [token, organization.token])
        for (const [address, status] of [
          ['198.51.100.7', 200],
          ['::ffff:198.51.100.7', 200],
          ['2001:db8::1', 200],
          ['198.51.101.7', 403],
          ['2001:db9::1', 403],
        ] as const) {
          const response = await app.call('/org', {
            token: credential,
            headers: { 'x-forwarded-for': address },
          });
          expect({ address, status: response.statusCode }).toEqual({ address, status });
        }
    } finally {
      await limit();
    }
  });
});

describe('a session that can only enroll a second factor', () => {
  test('reaches no organization and no settings of the account', async () => {
    const { userId } = await signIn();
    const { token } = await createTestSession(app.worker, userId, { kind: 'enroll' });
    expectProblem(await app.call('/org', { token }), 'policy_violation');
    expectProblem(await app.call('/user/me/sessions', { token }), 'policy_violation');
  });
});

describe('the list of sessions', () => {
  test('shows active sessions, the current one marked', async () => {
    const { userId, token, id } = await signIn();
    const other = await createTestSession(app.worker, userId, { userAgent: null });
    const { data } = (await app.call('/user/me/sessions', { token })).json();
    expect(data).toMatchObject([
      { id: other.id, current: false, user_agent: null },
      { id, current: true, ip: '192.0.2.1', method: 'password' },
    ]);
    expect(JSON.stringify(data)).not.toContain(token);
  });

  test('revokes one session', async () => {
    const { userId, token } = await signIn();
    const other = await createTestSession(app.worker, userId);
    const revoke = () => app.call(`/user/me/sessions/${other.id}`, { method: 'DELETE', token });
    expect((await revoke()).statusCode).toBe(204);
    expectProblem(await app.call('/org', { token: other.token }), 'unauthenticated');
    expectProblem(await revoke(), 'not_found');
  });

  test("does not revoke another person's session", async () => {
    const victim = await signIn();
    const { token } = await signIn();
    const response = await app.call(`/user/me/sessions/${victim.id}`, { method: 'DELETE', token });
    expectProblem(response, 'not_found');
    expect((await app.call('/org', { token: victim.token })).statusCode).toBe(200);
  });

  test.each([
    [{}, 401],
    [{ keep_current: true }, 200],
  ])('revokes all sessions with %j', async (body, status) => {
    const { userId, token } = await signIn();
    const other = await createTestSession(app.worker, userId);
    const response = await app.call('/user/me/sessions/revoke-all', { method: 'POST', token, body });
    expect(response.json()).toEqual({ object: 'session_revocation', revoked: status === 200 ? 1 : 2 });
    expect((await app.call('/org', { token: other.token })).statusCode).toBe(401);
    expect((await app.call('/org', { token })).statusCode).toBe(status);
  });

  test('is not available to API keys', async () => {
    const response = await app.call('/user/me/sessions', { token: organization.token });
    expectProblem(response, 'unauthenticated');
  });
});

test('the API login cannot read sessions and passwords outside the use-cases of people', async () => {
  for (const statement of [sql`select * from sessions`, sql`select password_hash from users`])
    await expect(
      app.database.transaction({ organizationId: organization.organizationId }, ({ db }) =>
        query({ db }, statement),
      ),
    ).rejects.toThrow(/permission denied/);
  await expect(
    app.database.peopleTransaction(({ db }) => query({ db }, sql`select id from messages`)),
  ).rejects.toThrow(/permission denied/);
});
