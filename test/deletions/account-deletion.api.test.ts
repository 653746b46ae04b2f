import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { generate } from 'otplib';
import { readAccountMail } from '../support/account-mail.ts';
import { createAccountQuickly, newNetwork, PASSWORD, signIn, type TestAccount } from '../support/accounts.ts';
import { createKey } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { addStaffMember, createStaff } from '../support/staff.ts';
import { enrollTotp } from '../support/totp.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

const call = (method: 'POST' | 'DELETE', path: string, body?: unknown, token?: string) =>
  app.call(path, {
    method,
    headers: newNetwork(),
    ...(body === undefined ? {} : { body }),
    ...(token === undefined ? {} : { token }),
  });
const post = (path: string, body?: unknown, token?: string) => call('POST', path, body, token);
const deleteAccount = (
  { token }: Pick<TestAccount, 'token'>,
  body: unknown = { current_password: PASSWORD },
) => call('DELETE', '/user/me', body, token);
const recover = (body: unknown) => post('/user/me/recover', body);
const byPassword = ({ email }: TestAccount, password = PASSWORD) => recover({ email, password });

async function mailedToken({ email }: TestAccount, template = 'account-deleted'): Promise<string> {
  const mails = await readAccountMail(app, email);
  return mails.findLast((mail) => mail.template === template)?.token ?? '';
}

const templates = async ({ email }: TestAccount) =>
  (await readAccountMail(app, email)).map(({ template }) => template);

async function organizationOf({ userId }: TestAccount): Promise<string> {
  const [row] = await query<{ id: string }>(
    app.worker,
    sql`select org_id as id from members where user_id = ${userId} and role = 'owner'`,
  );
  return row?.id ?? '';
}

async function createAccount(): Promise<TestAccount> {
  const account = await createAccountQuickly(app);
  return { ...account, apiKey: (await createKey(app.worker, account)).token };
}

const deletionsOf = (userId: string) =>
  query<{ id: string; kind: string; status: string; subjectId: string }>(
    app.worker,
    sql`select id, kind, status, subject_id as "subjectId" from deletions where deleted_by = ${userId} order by kind`,
  );

/** Moves the deletion into the past, as if the days had gone by. */
async function passDays({ userId }: TestAccount, days: number): Promise<void> {
  const interval = sql`${days} * interval '1 day'`;
  await query(
    app.worker,
    sql`update deletions set deleted_at = deleted_at - ${interval}, due_at = due_at - ${interval} where deleted_by = ${userId}`,
  );
  await query(app.worker, sql`update users set deleted_at = deleted_at - ${interval} where id = ${userId}`);
}

const commandsFor = (subjectId: string) =>
  app.commands.filter(({ start, signal }) => (start ?? signal)?.workflowId.includes(`/${subjectId}/`));

describe('deleting an account', () => {
  test('is refused to staff, whose role only another admin ends', async () => {
    const account = await createAccount();
    await addStaffMember(app.worker, account.userId, 'admin');
    expectProblem(await deleteAccount(account), 'conflict');
    expect((await app.call('/user/me', { token: account.token })).statusCode).toBe(200);
    await query(
      app.worker,
      sql`delete from staff_members where user_id = ${account.userId} returning user_id`,
    );
    expect((await deleteAccount(account)).statusCode).toBe(202);
  });

  test('of a person who becomes staff at the same time leaves no staff without an account', async () => {
    const admin = await createStaff(app);
    const accounts = await Promise.all(Array.from({ length: 4 }, createAccount));
    await Promise.all(
      accounts.flatMap((account) => [
        deleteAccount(account),
        call('POST', '/admin/staff', { email: account.email, role: 'admin', note: 'Hired' }, admin.token),
      ]),
    );
    const ids = accounts.map(({ userId }) => userId);
    const gone = await query(
      app.worker,
      sql`select u.id from users u join staff_members s on s.user_id = u.id
      where u.id = any(${ids}) and u.deleted_at is not null`,
    );
    expect(gone).toEqual([]);
  });

  test('ends its sessions, closes its organization, mails a recovery token and starts the purges', async () => {
    const account = await createAccount();
    const organizationId = await organizationOf(account);
    const other = await signIn(app, account.email);
    const response = await deleteAccount(account);
    expect(response.statusCode).toBe(202);
    const { deleted_at, recoverable_until } = response.json();
    expect(Date.parse(recoverable_until) - Date.parse(deleted_at)).toBe(30 * 86_400_000);
    for (const token of [account.token, other.json().token])
      expectProblem(await app.call('/user/me', { token }), 'unauthenticated');
    expectProblem(await app.call('/org', { token: account.apiKey }), 'organization_deleted');
    expect(await mailedToken(account)).toMatch(/^\w{43}$/);
    expect(await deletionsOf(account.userId)).toMatchObject([
      { kind: 'account', status: 'waiting', subjectId: account.userId },
      { kind: 'organization', status: 'waiting', subjectId: organizationId },
    ]);
    const [first, second] = await deletionsOf(account.userId);
    expect(commandsFor(account.userId)).toMatchObject([
      {
        start: {
          workflowType: 'purgeAccount',
          workflowId: `purge/${account.userId}/${first?.id}`,
          input: { deletionId: first?.id, dueAt: recoverable_until },
          searchAttributes: { ResourceId: account.userId, Stage: 'waiting' },
        },
      },
    ]);
    expect(commandsFor(organizationId)).toMatchObject([
      {
        start: {
          workflowType: 'purgeOrganization',
          workflowId: `purge-organization/${organizationId}/${second?.id}`,
          searchAttributes: { OrgId: organizationId },
        },
      },
    ]);
    const audit = await query<{ action: string }>(
      app.worker,
      sql`select action from audit_entries where org_id = ${organizationId} order by id`,
    );
    expect(audit.map(({ action }) => action)).toEqual(
      expect.arrayContaining(['user.deleted', 'organization.deleted']),
    );
  });

  test('requires the current password, or a sign-in within ten minutes', async () => {
    const account = await createAccount();
    expectProblem(
      await deleteAccount(account, { current_password: 'wrong-password-12' }),
      'invalid_credentials',
    );
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '11 minutes' where user_id = ${account.userId}`,
    );
    expectProblem(await deleteAccount(account, {}), 'session_expired');
    const fresh = (await signIn(app, account.email)).json();
    expect((await deleteAccount(fresh, {})).statusCode).toBe(202);
  });

  test('is done once by two concurrent requests', async () => {
    const account = await createAccount();
    const statuses = (await Promise.all([1, 2, 3].map(() => deleteAccount(account)))).map(
      ({ statusCode }) => statusCode,
    );
    expect(statuses.sort()).toEqual([202, 401, 401]);
    expect(await deletionsOf(account.userId)).toHaveLength(2);
  });

  test('leaves an organization with another owner open, and its keys working', async () => {
    const account = await createAccount();
    const organizationId = await organizationOf(account);
    const other = await createTestUser(app.worker, { organizationId, role: 'owner' });
    expect((await deleteAccount(account)).statusCode).toBe(202);
    const { token } = await createTestSession(app.worker, other);
    for (const credential of [token, account.apiKey])
      expect((await app.call('/org', { token: credential })).statusCode).toBe(200);
  });

  test('is refused to the last owner among other members, who hands over first', async () => {
    const account = await createAccount();
    const organizationId = await organizationOf(account);
    const member = await createTestUser(app.worker, { organizationId, role: 'admin' });
    const problem = expectProblem(await deleteAccount(account), 'conflict');
    expect(problem).toMatchObject({
      org_id: organizationId,
      detail: expect.stringContaining('organization Test'),
      fix: expect.stringContaining('/org/members'),
    });
    const promoted = await app.call(`/org/members/${member}`, {
      method: 'PATCH',
      token: account.token,
      body: { role: 'owner' },
    });
    expect(promoted.statusCode).toBe(200);
    expect((await deleteAccount(account)).statusCode).toBe(202);
  });

  test('of two owners at the same time leaves one of them', async () => {
    for (let round = 0; round < 3; round += 1) {
      const account = await createAccount();
      const organizationId = await organizationOf(account);
      const second = await createTestUser(app.worker, { organizationId, role: 'owner' });
      await createTestUser(app.worker, { organizationId, role: 'viewer' });
      const session = await createTestSession(app.worker, second);
      const statuses = (await Promise.all([deleteAccount(account), deleteAccount(session, {})])).map(
        ({ statusCode }) => statusCode,
      );
      expect(statuses.sort()).toEqual([202, 409]);
    }
  });

  test('does not count another owner whose account is deleted, here and for the roles of members', async () => {
    const account = await createAccount();
    const organizationId = await organizationOf(account);
    const second = await createTestUser(app.worker, { organizationId, role: 'owner' });
    await createTestUser(app.worker, { organizationId, role: 'viewer' });
    const session = await createTestSession(app.worker, second);
    expect((await deleteAccount(session, {})).statusCode).toBe(202);
    expectProblem(await deleteAccount(account), 'conflict');
    const demoted = await app.call(`/org/members/${account.userId}`, {
      method: 'PATCH',
      token: account.token,
      body: { role: 'admin' },
    });
    expectProblem(demoted, 'conflict');
  });
});

describe('a deleted account', () => {
  test('says so only after the right password', async () => {
    const account = await createAccount();
    await deleteAccount(account);
    expectProblem(await signIn(app, account.email, 'wrong-password-12'), 'invalid_credentials');
    const problem = expectProblem(await signIn(app, account.email), 'account_deleted');
    expect(problem).toMatchObject({
      recoverable_until: expect.stringMatching(/Z$/),
      fix: expect.stringContaining('/user/me/recover'),
    });
    await passDays(account, 30);
    expectProblem(await signIn(app, account.email), 'invalid_credentials');
  });

  test('gets another token by a forgotten password or a sign-up, with the usual answer, a few times an hour', async () => {
    const account = await createAccount();
    await deleteAccount(account);
    const forgotten = await post('/auth/password/forgot', { email: account.email });
    expect(forgotten.statusCode).toBe(202);
    const signedUp = await post('/auth/signup', {
      email: account.email.toUpperCase(),
      password: PASSWORD,
      name: 'Ada',
      organization_name: 'Engines',
    });
    expect(signedUp.json()).toEqual({ object: 'acknowledgement', status: 'verification_sent' });
    expect((await templates(account)).slice(-2)).toEqual(['account-recoverable', 'account-recoverable']);
    for (let count = 0; count < 4; count += 1) await post('/auth/password/forgot', { email: account.email });
    expect((await templates(account)).filter((name) => name === 'account-recoverable')).toHaveLength(3);
    // The first token is still valid.
    expect((await recover({ token: await mailedToken(account) })).statusCode).toBe(200);
  });

  test('accepts no token that was mailed before: of a password reset or an email change', async () => {
    const account = await createAccount();
    await post('/auth/password/forgot', { email: account.email });
    const reset = await mailedToken(account, 'reset-password');
    const newEmail = `new-${account.email}`;
    const change = { current_password: PASSWORD, new_email: newEmail };
    expect((await post('/user/me/change-email', change, account.token)).statusCode).toBe(202);
    const [confirmation] = await readAccountMail(app, newEmail);
    await deleteAccount(account);
    const body = { token: reset, password: 'another-long-password-7' };
    expectProblem(await post('/auth/password/reset', body), 'invalid_credentials');
    const token = confirmation?.token ?? '';
    expectProblem(await post('/auth/change-email/confirm', { token }), 'invalid_credentials');
    expectProblem(await recover({ token }), 'invalid_credentials');
    expectProblem(await recover({ token: reset }), 'invalid_credentials');
  });

  test('does not sign in with a second factor that was pending', async () => {
    const { account, secret } = await createAccountWithFactor();
    const { mfa_token } = (await signIn(app, account.email)).json();
    await deleteAccount(account, {});
    const body = { mfa_token, method: 'totp', code: await generate({ secret }) };
    expectProblem(await post('/auth/mfa/challenge', body), 'invalid_credentials');
  });
});

describe('recovering an account', () => {
  test.each(['token', 'password'] as const)('by %s signs in, and reopens its organization', async (proof) => {
    const account = await createAccount();
    const organizationId = await organizationOf(account);
    await deleteAccount(account);
    const token = await mailedToken(account);
    const recovered = await (proof === 'token' ? recover({ token }) : byPassword(account));
    expect(recovered.statusCode).toBe(200);
    expect(recovered.json()).toMatchObject({
      token: expect.stringMatching(/^sst_/),
      user: {
        id: account.userId,
        deleted_at: null,
        organizations: [{ id: organizationId, deleted_at: null }],
      },
    });
    for (const credential of [recovered.json().token, account.apiKey])
      expect((await app.call('/org', { token: credential })).statusCode).toBe(200);
    // Sessions from before stay ended.
    expectProblem(await app.call('/user/me', { token: account.token }), 'unauthenticated');
    expect(await templates(account)).toContain('account-recovered');
    expect((await deletionsOf(account.userId)).map(({ status }) => status)).toEqual([
      'recovered',
      'recovered',
    ]);
    for (const subjectId of [account.userId, organizationId])
      expect(commandsFor(subjectId).at(-1)).toMatchObject({ signal: { signalName: 'cancel' } });
    // It can be deleted again.
    expect((await deleteAccount(recovered.json())).statusCode).toBe(202);
  });

  test('works once with a token, also for concurrent requests, and voids the other tokens', async () => {
    const account = await createAccount();
    await deleteAccount(account);
    const token = await mailedToken(account);
    await post('/auth/password/forgot', { email: account.email });
    const other = await mailedToken(account, 'account-recoverable');
    const statuses = (await Promise.all([recover({ token }), recover({ token }), byPassword(account)])).map(
      ({ statusCode }) => statusCode,
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    for (const used of [token, other]) expectProblem(await recover({ token: used }), 'invalid_credentials');
    expectProblem(await byPassword(account), 'conflict');
    expect((await templates(account)).filter((name) => name === 'account-recovered')).toHaveLength(1);
  });

  test('needs the right password, of an account that exists', async () => {
    const account = await createAccount();
    await deleteAccount(account);
    expectProblem(await byPassword(account, 'wrong-password-12'), 'invalid_credentials');
    expectProblem(await byPassword({ ...account, email: `x-${account.email}` }), 'invalid_credentials');
    expectProblem(await recover({ token: 'x'.repeat(43) }), 'invalid_credentials');
  });

  test.each([{}, { token: 'x', email: 'a@b.example' }, { email: 'a@b.example' }, { password: 'x' }])(
    'rejects the incomplete or mixed proof %j',
    async (body) => {
      expectProblem(await recover(body), 'validation_error');
    },
  );

  test('does not recover an account with the token of another one', async () => {
    const [mine, theirs] = await Promise.all([createAccount(), createAccount()]);
    await Promise.all([deleteAccount(mine), deleteAccount(theirs)]);
    const recovered = await recover({ token: await mailedToken(mine) });
    expect(recovered.json().user.id).toBe(mine.userId);
    expectProblem(await signIn(app, theirs.email), 'account_deleted');
  });

  test('ends after 30 days', async () => {
    const account = await createAccount();
    await deleteAccount(account);
    await passDays(account, 29);
    await post('/auth/password/forgot', { email: account.email });
    const token = await mailedToken(account, 'account-recoverable');
    await passDays(account, 1);
    expectProblem(await recover({ token }), 'invalid_credentials');
    expectProblem(await byPassword(account), 'invalid_credentials');
  });

  test('asks for the second factor first: until then the account stays deleted', async () => {
    const { account, secret } = await createAccountWithFactor();
    await deleteAccount(account, {});
    const started = await byPassword(account);
    expect(started.json()).toMatchObject({ mfa_required: true });
    expectProblem(await signIn(app, account.email), 'account_deleted');
    const { mfa_token } = started.json();
    const wrong = { mfa_token, method: 'totp', code: '000000' };
    expectProblem(await post('/auth/mfa/challenge', wrong), 'invalid_credentials');
    const code = await generate({ secret });
    const completed = await post('/auth/mfa/challenge', { mfa_token, method: 'totp', code });
    expect(completed.json()).toMatchObject({ user: { id: account.userId, deleted_at: null } });
  });

  test('is not possible for a suspended person', async () => {
    const account = await createAccount();
    await deleteAccount(account);
    await query(app.worker, sql`update users set status = 'suspended' where id = ${account.userId}`);
    expectProblem(await byPassword(account), 'invalid_credentials');
    expectProblem(await recover({ token: await mailedToken(account) }), 'invalid_credentials');
    expect((await deletionsOf(account.userId)).map(({ status }) => status)).toEqual(['waiting', 'waiting']);
  });
});

async function createAccountWithFactor(): Promise<{ account: TestAccount; secret: string }> {
  const account = await createAccount();
  const { secret } = await enrollTotp((path, body) => post(path, body, account.token));
  return { account, secret };
}
