import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import type { MemberRole } from '../../domain/identity/roles.ts';
import { renderTemplate } from '../../domain/notifications/templates.ts';
import { readAccountMail } from '../support/account-mail.ts';
import { createAccount, newAddress, newNetwork, PASSWORD, signIn } from '../support/accounts.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let organization: TestOrganization;
let owner: string;
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  owner = (await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] })).token;
});

const invite = (email: string, role = 'developer', token = owner) =>
  app.call('/org/invitations', { method: 'POST', token, body: { email, role } });
const accept = (body: unknown, token?: string) =>
  app.call('/invitations/accept', {
    method: 'POST',
    headers: newNetwork(),
    ...(token === undefined ? {} : { token }),
    body,
  });
const revoke = (id: string, token = owner) =>
  app.call(`/org/invitations/${id}/revoke`, { method: 'POST', token });
const rolesOf = async (userId: string) =>
  query<{ role: string }>(
    app.worker,
    sql`select role from members where org_id = ${organization.organizationId} and user_id = ${userId}`,
  );

async function join(role: MemberRole) {
  const userId = await createTestUser(app.worker, { ...organization, role });
  return { userId, token: (await createTestSession(app.worker, userId)).token };
}

/** Invites an address and returns the mailed token. */
async function mailedToken(email: string, role = 'developer', token = owner): Promise<string> {
  const response = await invite(email, role, token);
  if (response.statusCode !== 201) throw new Error(response.body);
  return (await readAccountMail(app, email)).at(-1)?.token ?? '';
}

const changeInvitation = (email: string, set: ReturnType<typeof sql>) =>
  query(app.worker, sql`update invitations set ${set} where email = ${email} returning id`);

describe('an invitation', () => {
  test('of a new address creates an account, which is a member with the given role', async () => {
    const email = newAddress();
    const created = await invite(email.toUpperCase());
    expect(created.statusCode).toBe(201);
    expect(created.json()).toMatchObject({
      email,
      role: 'developer',
      status: 'pending',
      invited_by_user_id: organization.ownerId,
    });
    const [mail] = await readAccountMail(app, email);
    expect(created.body).not.toContain(mail?.token);
    const response = await accept({ token: mail?.token, name: 'Grace', password: PASSWORD });
    expect(response.statusCode).toBe(200);
    const { token, user } = response.json();
    expect(user).toMatchObject({
      email,
      email_verified: true,
      name: 'Grace',
      organizations: [{ id: organization.organizationId, role: 'developer' }],
    });
    expect((await app.call('/org', { token })).statusCode).toBe(200);
    expect((await signIn(app, email)).statusCode).toBe(200);
    const { data } = (await app.call('/org/invitations?status=accepted', { token: owner })).json();
    expect(data).toMatchObject([{ email, status: 'accepted', accepted_at: expect.any(String) }]);
    const audit = (await app.call('/org/audit-log?order=asc', { token: owner })).json().data;
    expect(audit.map(({ action }: { action: string }) => action)).toEqual([
      'invitation.created',
      'invitation.accepted',
    ]);
    expect(JSON.stringify(audit)).not.toContain(mail?.token);
  });

  test('takes no password that consists of the address or the name', async () => {
    const email = newAddress();
    const token = await mailedToken(email);
    const name = 'Wilhelmina Quimbycroft';
    for (const password of [email, 'quimbycroft-wilhelmina-1'])
      expectProblem(await accept({ token, name, password }), 'validation_error');
    expect((await accept({ token, name, password: PASSWORD })).statusCode).toBe(200);
  });

  test('of an address with an account adds the organization, and keeps session and password', async () => {
    const account = await createAccount(app);
    const token = await mailedToken(account.email, 'viewer');
    const response = await accept({ token }, account.token);
    expect(response.json()).toMatchObject({ token: account.token, enrollment_only: false });
    expect(response.json().user.organizations).toHaveLength(2);
    expect(await rolesOf(account.userId)).toEqual([{ role: 'viewer' }]);
    const sessions = await query(app.worker, sql`select id from sessions where user_id = ${account.userId}`);
    expect(sessions).toHaveLength(1);
    expect((await signIn(app, account.email)).statusCode).toBe(200);
  });

  test('never signs in to an existing account, and never sets its password', async () => {
    const account = await createAccount(app);
    const token = await mailedToken(account.email);
    expectProblem(await accept({ token }), 'conflict');
    expectProblem(await accept({ token, password: 'another-otter-marble-12' }), 'conflict');
    expectProblem(
      await accept({ token, password: 'another-otter-marble-12' }, account.token),
      'validation_error',
    );
    expectProblem(await accept({ token, name: 'Eve' }, account.token), 'validation_error');
    expect((await signIn(app, account.email)).statusCode).toBe(200);
    expect((await signIn(app, account.email, 'another-otter-marble-12')).statusCode).toBe(401);
    expect(await rolesOf(account.userId)).toEqual([]);
    // None of these attempts used it up.
    expect((await accept({ token }, account.token)).statusCode).toBe(200);
  });

  test('is not accepted by another address', async () => {
    const account = await createAccount(app);
    const invited = newAddress();
    const token = await mailedToken(invited, 'admin');
    expectProblem(await accept({ token }, account.token), 'permission_denied');
    const existing = await createAccount(app);
    const ofExisting = await mailedToken(existing.email, 'admin');
    expectProblem(await accept({ token: ofExisting }, account.token), 'permission_denied');
    expect(await rolesOf(account.userId)).toEqual([]);
    expect((await accept({ token, password: PASSWORD })).statusCode).toBe(200);
  });

  test('is not accepted with an API key, or with a session that is not valid', async () => {
    const token = await mailedToken(newAddress());
    for (const credential of [organization.token, 'sst_x', `sst_${'a'.repeat(43)}`])
      expectProblem(await accept({ token, password: PASSWORD }, credential), 'unauthenticated');
    const account = await createAccount(app);
    const ofAccount = await mailedToken(account.email);
    const enrolling = await createTestSession(app.worker, account.userId, { kind: 'enroll' });
    expectProblem(await accept({ token: ofAccount }, enrolling.token), 'policy_violation');
    expect(await rolesOf(account.userId)).toEqual([]);
  });

  test('works once, also for two at the same time', async () => {
    const email = newAddress();
    const token = await mailedToken(email);
    const both = await Promise.all([1, 2].map(() => accept({ token, password: PASSWORD })));
    expect(both.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409]);
    expectProblem(await accept({ token, password: PASSWORD }), 'conflict');
    expect(await query(app.worker, sql`select id from users where email = ${email}`)).toHaveLength(1);
    const account = await createAccount(app);
    const ofAccount = await mailedToken(account.email);
    const sessions = await Promise.all([1, 2].map(() => accept({ token: ofAccount }, account.token)));
    expect(sessions.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409]);
  });

  test('is void once it is revoked, and cannot be revoked twice or after its acceptance', async () => {
    const email = newAddress();
    const token = await mailedToken(email);
    const [{ id }] = (await app.call('/org/invitations', { token: owner })).json().data;
    expect((await revoke(id)).json()).toMatchObject({ id, status: 'revoked' });
    expectProblem(await accept({ token, password: PASSWORD }), 'conflict');
    expectProblem(await revoke(id), 'conflict');
    const accepted = await mailedToken(newAddress());
    await accept({ token: accepted, password: PASSWORD });
    const [latest] = (await app.call('/org/invitations', { token: owner })).json().data;
    expectProblem(await revoke(latest.id), 'conflict');
    expect(await query(app.worker, sql`select id from users where email = ${email}`)).toEqual([]);
  });

  test.each([
    ['revoked', sql`revoked_at = now()`],
    ['expired', sql`expires_at = date_trunc('milliseconds', now())`],
    ['no more allowed to manage members', sql`permissions = array_remove(permissions, 'members:manage')`],
    ['without a permission of the role', sql`permissions = array_remove(permissions, 'lists:read')`],
    [
      'out of reach of the organization',
      sql`env_id = (select id from environments e where e.org_id = api_keys.org_id limit 1)`,
    ],
  ])('of a key gives nothing once the key is %s', async (_what, set) => {
    const { token: key, keyId } = await createKey(app.worker, organization);
    const token = await mailedToken(newAddress(), 'viewer', key);
    await query(app.worker, sql`update api_keys set ${set} where id = ${keyId} returning id`);
    const refused = expectProblem(await accept({ token, password: PASSWORD }), 'conflict');
    expect(refused.detail).toMatch(/may no longer invite people/);
  });

  test('of a key gives its role while the key may', async () => {
    const { token: key } = await createKey(app.worker, organization);
    const token = await mailedToken(newAddress(), 'viewer', key);
    expect((await accept({ token, password: PASSWORD })).statusCode).toBe(200);
  });

  test('expires after seven days', async () => {
    const email = newAddress();
    const token = await mailedToken(email);
    const [{ expires_at, created_at }] = (await app.call('/org/invitations', { token: owner })).json().data;
    expect(Math.round((Date.parse(expires_at) - Date.parse(created_at)) / 86_400_000)).toBe(7);
    await changeInvitation(email, sql`expires_at = now() - interval '1 second'`);
    expectProblem(await accept({ token, password: PASSWORD }), 'conflict');
    const { data } = (await app.call('/org/invitations?status=expired', { token: owner })).json();
    expect(data).toMatchObject([{ email, status: 'expired' }]);
    expect((await app.call('/org/invitations?status=pending', { token: owner })).json().data).toEqual([]);
  });

  test('ends with the membership of the person who sent it', async () => {
    const admin = await join('admin');
    const token = await mailedToken(newAddress(), 'developer', admin.token);
    const path = `/org/members/${admin.userId}/offboard`;
    const offboarded = await app.call(path, { method: 'POST', token: owner, body: {} });
    expect(offboarded.json()).toMatchObject({ invitations_revoked: 1 });
    expectProblem(await accept({ token, password: PASSWORD }), 'conflict');
  });

  test('from before does not bring a removed member back', async () => {
    const account = await createAccount(app);
    const token = await mailedToken(account.email, 'viewer');
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at)
      values (${organization.organizationId}, ${account.userId}, 'viewer', now()) returning user_id`,
    );
    const removed = await app.call(`/org/members/${account.userId}`, { method: 'DELETE', token: owner });
    expect(removed.statusCode).toBe(204);
    expectProblem(await accept({ token }, account.token), 'conflict');
    expect(await rolesOf(account.userId)).toEqual([]);
  });

  test('is void once its sender may not give the role any more', async () => {
    const admin = await join('admin');
    const tokens = [
      await mailedToken(newAddress(), 'developer', admin.token),
      await mailedToken(newAddress(), 'viewer', admin.token),
    ];
    await app.call(`/org/members/${admin.userId}`, {
      method: 'PATCH',
      token: owner,
      body: { role: 'developer' },
    });
    for (const token of tokens) expectProblem(await accept({ token, password: PASSWORD }), 'conflict');
    const second = await join('owner');
    const ofOwner = await mailedToken(newAddress(), 'owner', second.token);
    await app.call(`/org/members/${second.userId}`, {
      method: 'PATCH',
      token: owner,
      body: { role: 'admin' },
    });
    expectProblem(await accept({ token: ofOwner, password: PASSWORD }), 'conflict');
    const { token: key, keyId } = await createKey(app.worker, organization);
    const viewerByKey = await mailedToken(newAddress(), 'viewer', key);
    await app.call(`/api-keys/${keyId}`, { method: 'DELETE', token: owner });
    expectProblem(await accept({ token: viewerByKey, password: PASSWORD }), 'conflict');
  });

  test('does not change the role of a person who is a member meanwhile', async () => {
    const account = await createAccount(app);
    const token = await mailedToken(account.email, 'admin');
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at)
      values (${organization.organizationId}, ${account.userId}, 'viewer', now()) returning user_id`,
    );
    expect((await accept({ token }, account.token)).statusCode).toBe(200);
    expect(await rolesOf(account.userId)).toEqual([{ role: 'viewer' }]);
  });

  test('to a suspended or closed organization is not accepted', async () => {
    const token = await mailedToken(newAddress());
    const set = (change: ReturnType<typeof sql>) =>
      query(
        app.worker,
        sql`update organizations set ${change} where id = ${organization.organizationId} returning id`,
      );
    await set(sql`status = 'suspended'`);
    expectProblem(await accept({ token, password: PASSWORD }), 'organization_suspended');
    await set(sql`status = 'active', deleted_at = now()`);
    expectProblem(await accept({ token, password: PASSWORD }), 'invalid_credentials');
    await set(sql`deleted_at = null`);
    expect((await accept({ token, password: PASSWORD })).statusCode).toBe(200);
  });

  test('of a deleted account asks to recover it', async () => {
    const account = await createAccount(app);
    const token = await mailedToken(account.email);
    await query(
      app.worker,
      sql`update users set deleted_at = now() where id = ${account.userId} returning id`,
    );
    expect(expectProblem(await accept({ token, password: PASSWORD }), 'conflict').fix).toMatch(/Recover/);
  });

  test('leads to a session that can only enroll a factor where the organization requires one', async () => {
    await app.call('/org/policies', { method: 'PATCH', token: owner, body: { require_mfa: true } });
    const token = await mailedToken(newAddress());
    const response = await accept({ token, password: PASSWORD });
    expect(response.json()).toMatchObject({ enrollment_only: true });
    expectProblem(await app.call('/org', { token: response.json().token }), 'policy_violation');
  });

  test('ends pending sign-ups with the address: someone else may have begun them', async () => {
    const email = newAddress();
    const fields = { email, password: 'planted-otter-marble-12', name: 'Eve', organization_name: 'Evil' };
    await app.call('/auth/signup', { method: 'POST', body: fields, headers: newNetwork() });
    const planted = (await readAccountMail(app, email))[0]?.token;
    const token = await mailedToken(email);
    expect((await accept({ token, password: PASSWORD })).statusCode).toBe(200);
    const verified = await app.call('/auth/verify-email', {
      method: 'POST',
      headers: newNetwork(),
      body: { token: planted, password: 'planted-otter-marble-12' },
    });
    expectProblem(verified, 'invalid_credentials');
    const open = sql`select id from sign_ups where email = ${email} and used_at is null`;
    expect(await query(app.worker, open)).toEqual([]);
  });
});

describe('inviting', () => {
  test('gives no role above that of the inviter', async () => {
    const admin = await join('admin');
    expectProblem(await invite(newAddress(), 'owner', admin.token), 'permission_denied');
    expect((await invite(newAddress(), 'admin', admin.token)).statusCode).toBe(201);
    for (const role of ['developer', 'viewer'] as const)
      expectProblem(await invite(newAddress(), 'viewer', (await join(role)).token), 'permission_denied');
    expect((await invite(newAddress(), 'owner')).statusCode).toBe(201);
    const [{ id }] = (await app.call('/org/invitations', { token: owner })).json().data;
    expectProblem(await revoke(id, admin.token), 'permission_denied');
  });

  test('by a key gives no role with a permission that the key lacks', async () => {
    for (const role of ['owner', 'admin', 'developer'])
      expectProblem(await invite(newAddress(), role, organization.token), 'permission_denied');
    expect((await invite(newAddress(), 'viewer', organization.token)).json()).toMatchObject({
      invited_by_user_id: null,
      invited_by_key_id: organization.keyId,
    });
    const weak = await createKey(app.worker, { ...organization, permissions: ['members:manage'] });
    expectProblem(await invite(newAddress(), 'viewer', weak.token), 'permission_denied');
    const bound = await createKey(app.worker, {
      ...organization,
      environmentId: organization.productionEnvironmentId,
    });
    expectProblem(await invite(newAddress(), 'viewer', bound.token), 'permission_denied');
  });

  test('reaches an address once a day, and replaces the pending invitation', async () => {
    const email = newAddress();
    const first = await mailedToken(email);
    const refused = await invite(email, 'viewer');
    expectProblem(refused, 'rate_limited');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(86_000);
    await changeInvitation(email, sql`created_at = now() - interval '25 hours'`);
    const second = await mailedToken(email, 'viewer');
    expectProblem(await accept({ token: first, password: PASSWORD }), 'conflict');
    const { user } = (await accept({ token: second, password: PASSWORD })).json();
    expect(user.organizations).toMatchObject([{ role: 'viewer' }]);
    // Another organization may invite the same address.
    const other = await createOrganization(app.worker);
    const { token } = await createTestSession(app.worker, other.ownerId);
    expect((await invite(email, 'viewer', token)).statusCode).toBe(201);
  });

  test('is limited to 50 open invitations, also concurrently', async () => {
    await query(
      app.worker,
      sql`insert into invitations (id, org_id, email, role, token_hash, expires_at, created_at)
      select ${organization.organizationId} || n, ${organization.organizationId}, 'p' || n || '@people.example', 'viewer',
        sha256((${organization.organizationId} || n)::bytea), now() + interval '1 day', now()
      from generate_series(1, 49) n returning id`,
    );
    const statuses = await Promise.all([1, 2, 3].map(async () => (await invite(newAddress())).statusCode));
    expect(statuses.sort()).toEqual([201, 409, 409]);
  });

  test('sends one email to an address, even if it is invited twice at the same time', async () => {
    const email = newAddress();
    const statuses = await Promise.all([1, 2].map(async () => (await invite(email)).statusCode));
    expect(statuses.sort()).toEqual([201, 429]);
    expect(await readAccountMail(app, email)).toHaveLength(1);
  });

  test('repeats nothing with the same Idempotency-Key', async () => {
    const email = newAddress();
    const call = {
      method: 'POST' as const,
      token: owner,
      headers: { 'idempotency-key': 'invite-1' },
      body: { email, role: 'viewer' },
    };
    const [first, second] = [
      await app.call('/org/invitations', call),
      await app.call('/org/invitations', call),
    ];
    expect(second.json()).toEqual(first.json());
    expect(await readAccountMail(app, email)).toHaveLength(1);
  });

  test('refuses members', async () => {
    const email = `${organization.ownerId}@example.test`;
    expectProblem(await invite(email), 'already_exists');
  });

  test.each([
    { email: 'a@x@people.example', role: 'viewer' },
    { email: '"a b"@people.example', role: 'viewer' },
    { email: 'Ada <ada@people.example>', role: 'viewer' },
    { email: 'ada@people.example\r\nBcc: eve@people.example', role: 'viewer' },
    { email: '=?utf-8?q?ada?=@people.example, eve@people.example', role: 'viewer' },
    { email: ['ada@people.example', 'eve@people.example'], role: 'viewer' },
    { email: 'someone@mail.test', role: 'viewer' },
    { email: 'ada@people.example', role: 'root' },
    { email: 'ada@people.example', role: ['viewer'] },
    { email: 'ada@people.example' },
    { email: 'ada@people.example', role: 'viewer', organization_id: 'org_x' },
    null,
  ])('rejects the body %j', async (body) => {
    const response = await app.call('/org/invitations', { method: 'POST', token: owner, body });
    expectProblem(response, 'validation_error');
  });

  test('shows the inviter’s address, and no name of an organization that could carry a link', async () => {
    const rename = (name: string) =>
      query(
        app.worker,
        sql`update organizations set name = ${name} where id = ${organization.organizationId} returning id`,
      );
    await rename('Win a prize at https://evil.example');
    const email = newAddress();
    await invite(email);
    const [row] = await query<{ params: Record<string, string> }>(
      app.worker,
      sql`select params from notifications where email = ${email}`,
    );
    expect(row?.params).toMatchObject({
      organizationName: organization.organizationId,
      inviterEmail: `${organization.ownerId}@example.test`,
    });
    const params = { ...row?.params, token: 'tok' } as Parameters<typeof renderTemplate<'invitation'>>[1];
    expect(JSON.stringify(renderTemplate('invitation', params))).toContain('/invitations/accept?token=tok');
    expect(JSON.stringify(row?.params)).not.toContain('evil');
  });
});

test.each([
  {},
  { token: 'x' },
  { token: '' },
  { token: null },
  { token: ['x'] },
  { token: 'x'.repeat(201) },
  { token: 'x\u0000', password: PASSWORD },
  { token: 'x', password: PASSWORD, role: 'owner' },
  { token: 'x', password: PASSWORD, email: 'eve@people.example' },
  [],
  'x',
])('accepting with %j is a clear problem', async (body) => {
  const response = await accept(body);
  expect([400, 401]).toContain(response.statusCode);
  expectProblem(response, response.statusCode === 400 ? 'validation_error' : 'invalid_credentials');
});

test.each([
  [{ password: undefined }, 'password'],
  [{ password: 'short' }, 'password'],
  [{ password: 'passwordpassword' }, 'password'],
  [{ name: 'https://evil.example' }, 'name'],
  [{ name: '\u202Egnp' }, 'name'],
])('a new account with %j is refused, and the invitation stays open', async (fields, path) => {
  const email = newAddress();
  const token = await mailedToken(email);
  const problem = expectProblem(await accept({ token, password: PASSWORD, ...fields }), 'validation_error');
  expect(problem.errors).toMatchObject([{ path }]);
  expect((await accept({ token, password: PASSWORD })).statusCode).toBe(200);
});
