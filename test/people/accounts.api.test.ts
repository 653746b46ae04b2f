import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { sha256 } from '../../platform/crypto.ts';
import { networkOf } from '../../platform/network.ts';
import { readAccountMail } from '../support/account-mail.ts';
import {
  createAccountQuickly,
  newAddress,
  newNetwork,
  PASSWORD,
  signIn as signInByPassword,
} from '../support/accounts.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
async function post(
  path: string,
  body: unknown,
  { token, headers = newNetwork() }: { token?: string; headers?: Record<string, string> } = {},
) {
  return app.call(path, { method: 'POST', body, headers, ...(token === undefined ? {} : { token }) });
}

async function signUp(email = newAddress(), fields: Record<string, unknown> = {}) {
  const response = await post('/auth/signup', {
    email,
    password: PASSWORD,
    name: 'Ada Lovelace',
    organization_name: 'Analytical Engines',
    ...fields,
  });
  return { email, response };
}

async function latestToken(email: string): Promise<string> {
  return (await readAccountMail(app, email)).at(-1)?.token ?? '';
}

const createAccount = () => createAccountQuickly(app);
const signIn = (email: string, password?: string, headers?: Record<string, string>) =>
  signInByPassword(app, email, password, headers as ReturnType<typeof newNetwork>);

describe('a sign-up', () => {
  test('creates user, organization and key once the address and the person are proved', async () => {
    const { email, response } = await signUp();
    expect(response.statusCode).toBe(202);
    expect(response.json()).toEqual({ object: 'acknowledgement', status: 'verification_sent' });
    const before = await query(app.worker, sql`select from users where email = ${email}`);
    expect(before).toEqual([]);
    const [mail] = await readAccountMail(app, email);
    expect(mail).toMatchObject({ template: 'verify-email', token: expect.stringMatching(/^\w{43}$/) });

    const verified = await post('/auth/verify-email', { token: mail?.token, password: PASSWORD });
    expect(verified.json()).toMatchObject({
      token: expect.stringMatching(/^sst_/),
      api_key: expect.stringMatching(/^ask_live_/),
      organization: { id: expect.stringMatching(/^org_/) },
      user: { email, email_verified: true, name: 'Ada Lovelace', organizations: [{ role: 'owner' }] },
    });
    const { token, api_key } = verified.json();
    for (const credential of [token, api_key])
      expect((await app.call('/org', { token: credential })).json()).toMatchObject({
        name: 'Analytical Engines',
      });
    expect((await signIn(email)).json()).toMatchObject({ user: { email } });
  });

  test('accepts the browser that signed up instead of the password', async () => {
    const { email, response } = await signUp();
    const [cookie] = [response.headers['set-cookie']].flat();
    expect(cookie).toMatch(/^sign-up=\w+; .*Path=\/; HttpOnly; SameSite=Lax$/);
    const headers = { ...newNetwork(), cookie: String(cookie).split(';')[0] ?? '' };
    const verified = await post('/auth/verify-email', { token: await latestToken(email) }, { headers });
    expect(verified.statusCode).toBe(200);
  });

  test.each([
    ['without password and cookie', {}, {}],
    ['with a wrong password', { password: 'another-password-1' }, {}],
    ["with another browser's cookie", {}, { cookie: 'sign-up=0000' }],
  ])('is not completed %s, and stays open for the person', async (_case, body, headers) => {
    const { email } = await signUp();
    const token = await latestToken(email);
    const wrong = await post(
      '/auth/verify-email',
      { token, ...body },
      { headers: { ...newNetwork(), ...headers } },
    );
    expectProblem(wrong, 'invalid_credentials');
    expect((await post('/auth/verify-email', { token, password: PASSWORD })).statusCode).toBe(200);
  });

  test('of an attacker gives the attacker nothing, and ends when the victim signs up', async () => {
    const { email } = await signUp(newAddress(), { password: 'attacker-chosen-password' });
    const attackersToken = await latestToken(email);
    await signUp(email);
    const own = await latestToken(email);
    expect((await post('/auth/verify-email', { token: own, password: PASSWORD })).statusCode).toBe(200);
    const late = { token: attackersToken, password: 'attacker-chosen-password' };
    expectProblem(await post('/auth/verify-email', late), 'invalid_credentials');
    expectProblem(await signIn(email, 'attacker-chosen-password'), 'invalid_credentials');
  });

  test('is completed once by two concurrent requests', async () => {
    const { email } = await signUp();
    const body = { token: await latestToken(email), password: PASSWORD };
    const statuses = (await Promise.all([1, 2, 3].map(() => post('/auth/verify-email', body)))).map(
      ({ statusCode }) => statusCode,
    );
    expect(statuses.sort()).toEqual([200, 401, 401]);
    const organizations = await query(
      app.worker,
      sql`select from members m join users u on u.id = m.user_id where u.email = ${email}`,
    );
    expect(organizations).toHaveLength(1);
  });

  test('with a taken address gets the same answer, and its owner an email', async () => {
    const { email } = await createAccount();
    const { response } = await signUp(email.toUpperCase());
    expect(response.statusCode).toBe(202);
    expect(response.json()).toEqual({ object: 'acknowledgement', status: 'verification_sent' });
    const mail = (await readAccountMail(app, email)).at(-1);
    expect(mail).toMatchObject({ template: 'account-exists', token: '' });
  });

  test('token expires after a day', async () => {
    const { email } = await signUp();
    await query(
      app.worker,
      sql`update sign_ups set expires_at = date_trunc('milliseconds', now()) where email = ${email}`,
    );
    const expired = await post('/auth/verify-email', { token: await latestToken(email), password: PASSWORD });
    expectProblem(expired, 'invalid_credentials');
  });

  test('sends at most three emails an hour to an address', async () => {
    const email = newAddress();
    for (let count = 0; count < 3; count += 1) expect((await signUp(email)).response.statusCode).toBe(202);
    expectProblem((await signUp(email)).response, 'rate_limited');
    expect(await readAccountMail(app, email)).toHaveLength(3);
  });

  test.each([
    ['email', 'not-an-address'],
    ['email', 'a@x@y.example'],
    ['email', '"quoted"@people.example'],
    ['email', 'pıp@people.example'],
    ['email', 'someone@mail.test'],
    ['email', 'someone@sub.mail.test'],
    ['email', 'someone@bounces.mail.test'],
    ['email', ['a@people.example', 'b@people.example']],
    ['password', 'short'],
    ['password', 'password1234'],
    ['password', 'aaaaaaaaaaaaaaaa'],
    ['password', 'qwertyuiop1234567890'],
    ['password', 'AdaLovelace2026!'],
    ['password', 'Analytical123!!'],
    ['name', 'Win at https://casino.example'],
    ['name', 'casino.example'],
    ['name', 'ada@people.example'],
    ['name', 'Ada\u202eevil'],
    ['name', 'x'.repeat(51)],
    ['organization_name', 'A\r\nBcc: x\u0007'],
    ['role', 'owner'],
  ])('rejects %s %j', async (field, value) => {
    const { email, response } = await signUp(newAddress(), { [field]: value });
    expectProblem(response, 'validation_error');
    expect(await readAccountMail(app, email)).toEqual([]);
  });
});

describe('signing in', () => {
  test('fails the same way for a wrong password and an unknown address', async () => {
    const { email } = await createAccount();
    const strip = ({ request_id: _id, ...problem }: Record<string, unknown>) => problem;
    const wrong = expectProblem(await signIn(email, 'wrong-password-1'), 'invalid_credentials');
    const unknown = expectProblem(await signIn(newAddress()), 'invalid_credentials');
    expect(strip(wrong)).toEqual(strip(unknown));
  });

  test('is delayed after repeated failures, from other networks too, and for the right password', async () => {
    const { email } = await createAccount();
    const key = sha256(`account:${email}`);
    for (let count = 0; count < 5; count += 1)
      expectProblem(await signIn(email, 'wrong-password-1'), 'invalid_credentials');
    // The first delays are shorter than a sign-in on a busy machine takes.
    await query(app.worker, sql`update sign_in_attempts set failures = 12 where key_hash = ${key}`);
    expectProblem(await signIn(email, 'wrong-password-1'), 'invalid_credentials');
    const blocked = await signIn(email);
    expectProblem(blocked, 'rate_limited');
    expect(Number(blocked.headers['retry-after'])).toBeGreaterThan(0);
    await query(app.worker, sql`update sign_in_attempts set blocked_until = now() where key_hash = ${key}`);
    expect((await signIn(email)).statusCode).toBe(200);
    expect(await query(app.worker, sql`select from sign_in_attempts where key_hash = ${key}`)).toEqual([]);
  });

  test('counts concurrent guesses', async () => {
    const { email } = await createAccount();
    const guesses = await Promise.all(
      Array.from({ length: 12 }, (_, index) => signIn(email, `wrong-password-${index}`)),
    );
    const statuses = guesses.map(({ statusCode }) => statusCode);
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(6);
    expect(statuses).toContain(429);
  });

  test('of many people in one network is not delayed, but failures are', async () => {
    const { email } = await createAccount();
    const ip = '203.0.113.77';
    const network = { 'x-forwarded-for': ip };
    const key = sha256(`network:${networkOf(ip)}`);
    await query(
      app.worker,
      sql`insert into sign_in_attempts (key_hash, failures, last_attempt_at, blocked_until)
      values (${key}, 49, now(), now())`,
    );
    for (let count = 0; count < 4; count += 1)
      expect((await signIn(email, PASSWORD, network)).statusCode).toBe(200);
    expectProblem(await signIn(newAddress(), PASSWORD, network), 'invalid_credentials');
    expect((await signIn(email, PASSWORD, network)).statusCode).toBe(200);
    // The first delays are shorter than a sign-in on a busy machine takes.
    await query(app.worker, sql`update sign_in_attempts set failures = 60 where key_hash = ${key}`);
    expectProblem(await signIn(newAddress(), PASSWORD, network), 'invalid_credentials');
    expectProblem(await signIn(email, PASSWORD, network), 'rate_limited');
  });

  test('asks for the second factor of a person who has one', async () => {
    const { email, userId } = await createAccount();
    await query(
      app.worker,
      sql`insert into mfa_enrollments (id, user_id, type, name, confirmed_at, created_at)
      values (${`mfa_${userId}`}, ${userId}, 'totp', 'Phone', now(), now())`,
    );
    const response = (await signIn(email)).json();
    expect(response).toMatchObject({ mfa_required: true, methods: ['totp', 'recovery_code'] });
    expect(response.token).toBeUndefined();
    expectProblem(await app.call('/user/me', { token: response.mfa_token }), 'unauthenticated');
  });

  test('gives a session that can only enroll a factor if an organization requires one', async () => {
    const { email, userId } = await createAccount();
    await query(
      app.worker,
      sql`insert into organization_policies (org_id, require_mfa, updated_at)
      select org_id, true, now() from members where user_id = ${userId}`,
    );
    const { token, enrollment_only } = (await signIn(email)).json();
    expect(enrollment_only).toBe(true);
    expectProblem(await app.call('/org', { token }), 'policy_violation');
    expect((await app.call('/user/me', { token })).statusCode).toBe(200);
  });

  test('is not limited by the policy of a closed organization', async () => {
    const { email, userId } = await createAccount();
    await query(
      app.worker,
      sql`insert into organization_policies (org_id, require_mfa, updated_at)
      select org_id, true, now() from members where user_id = ${userId}`,
    );
    await query(
      app.worker,
      sql`update organizations set deleted_at = now() where id = (select org_id from members where user_id = ${userId})`,
    );
    expect((await signIn(email)).json()).toMatchObject({ enrollment_only: false });
  });

  test('ends with the sign-out', async () => {
    const { token } = await createAccount();
    expect((await post('/auth/logout', undefined, { token })).statusCode).toBe(204);
    expectProblem(await app.call('/user/me', { token }), 'unauthenticated');
  });
});

describe('a password', () => {
  test('is reset by a mailed token, once, and all sessions end', async () => {
    const { email, token } = await createAccount();
    expect((await post('/auth/password/forgot', { email })).statusCode).toBe(202);
    const mailed = await latestToken(email);
    const reset = (password: string) => post('/auth/password/reset', { token: mailed, password });
    expectProblem(await reset('weak'), 'validation_error');
    expect((await reset('another-marble-otter-9')).statusCode).toBe(204);
    expectProblem(await reset('third-marble-otter-9'), 'invalid_credentials');
    expectProblem(await app.call('/user/me', { token }), 'unauthenticated');
    expectProblem(await signIn(email), 'invalid_credentials');
    expect((await signIn(email, 'another-marble-otter-9')).statusCode).toBe(200);
    expect((await readAccountMail(app, email)).at(-1)?.template).toBe('password-changed');
  });

  test('reset does not reveal whether an account exists', async () => {
    const { email } = await createAccount();
    const known = await post('/auth/password/forgot', { email });
    const unknown = await post('/auth/password/forgot', { email: newAddress() });
    expect([known.statusCode, known.body]).toEqual([unknown.statusCode, unknown.body]);
  });

  test('reset mails go to the stored address, at most three an hour', async () => {
    const { email } = await createAccount();
    for (let count = 0; count < 5; count += 1)
      await post('/auth/password/forgot', { email: email.toUpperCase() });
    const resets = (await readAccountMail(app, email)).filter(
      ({ template }) => template === 'reset-password',
    );
    expect(resets).toHaveLength(3);
  });

  test('is changed with the current one, and other sessions end', async () => {
    const { email, token } = await createAccount();
    const other = (await signIn(email)).json().token;
    const change = (current_password?: string) =>
      post(
        '/user/me/change-password',
        {
          ...(current_password === undefined ? {} : { current_password }),
          new_password: 'another-marble-otter-9',
        },
        { token },
      );
    expectProblem(await change('wrong-password-1'), 'invalid_credentials');
    expectProblem(await change(), 'validation_error');
    expect((await change(PASSWORD)).statusCode).toBe(204);
    expect((await app.call('/user/me', { token })).statusCode).toBe(200);
    expectProblem(await app.call('/user/me', { token: other }), 'unauthenticated');
  });

  test('change voids a sign-in that waits for its second factor', async () => {
    const { email, token, userId } = await createAccount();
    await query(
      app.worker,
      sql`insert into mfa_enrollments (id, user_id, type, name, confirmed_at, created_at)
      values (${`mfa_${userId}`}, ${userId}, 'totp', 'Phone', now(), now())`,
    );
    await signIn(email);
    const body = { current_password: PASSWORD, new_password: 'another-marble-otter-9' };
    await post('/user/me/change-password', body, { token });
    const open = await query(
      app.worker,
      sql`select from mfa_challenges where user_id = ${userId} and used_at is null`,
    );
    expect(open).toEqual([]);
  });

  test.each(['reset', 'changed'])('that is %s voids a change of the address that waits', async (how) => {
    const { email, token, userId } = await createAccount();
    const attackersAddress = newAddress();
    const request = { current_password: PASSWORD, new_email: attackersAddress };
    expect((await post('/user/me/change-email', request, { token })).statusCode).toBe(202);
    const waiting = await latestToken(attackersAddress);
    expect(waiting).not.toBe('');
    const password = 'another-marble-otter-9';
    if (how === 'reset') {
      await post('/auth/password/forgot', { email });
      await post('/auth/password/reset', { token: await latestToken(email), password });
    } else {
      const body = { current_password: PASSWORD, new_password: password };
      await post('/user/me/change-password', body, { token });
    }
    expectProblem(await post('/auth/change-email/confirm', { token: waiting }), 'invalid_credentials');
    expect((await signIn(email, password)).json()).toMatchObject({ user: { id: userId, email } });
  });

  test('that is reset ends the delay after failures', async () => {
    const { email } = await createAccount();
    for (let count = 0; count < 6; count += 1) await signIn(email, 'wrong-password-1');
    await query(
      app.worker,
      sql`update sign_in_attempts set blocked_until = now() + interval '15 minutes'
      where key_hash = ${sha256(`account:${email}`)}`,
    );
    expectProblem(await signIn(email), 'rate_limited');
    await post('/auth/password/forgot', { email });
    const password = 'another-marble-otter-9';
    await post('/auth/password/reset', { token: await latestToken(email), password });
    expect((await signIn(email, password)).statusCode).toBe(200);
  });

  test('is set without the current one by a person who has none and has just signed in', async () => {
    const userId = await createTestUser(app.worker);
    const { id, token } = await createTestSession(app.worker, userId, { method: 'sso' });
    const body = { new_password: PASSWORD };
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '11 minutes' where id = ${id}`,
    );
    expectProblem(await post('/user/me/change-password', body, { token }), 'session_expired');
    await query(app.worker, sql`update sessions set authenticated_at = now() where id = ${id}`);
    expect((await post('/user/me/change-password', body, { token })).statusCode).toBe(204);
  });
});

describe('the email address', () => {
  test('changes when the token sent to the new one is confirmed; the old one is informed', async () => {
    const { email, token } = await createAccount();
    const newEmail = newAddress();
    const request = await post(
      '/user/me/change-email',
      { current_password: PASSWORD, new_email: newEmail },
      { token },
    );
    expect(request.statusCode).toBe(202);
    expect((await app.call('/user/me', { token })).json()).toMatchObject({ email });
    const mailed = await latestToken(newEmail);
    expect((await post('/auth/change-email/confirm', { token: mailed })).statusCode).toBe(204);
    expectProblem(await post('/auth/change-email/confirm', { token: mailed }), 'invalid_credentials');
    expectProblem(await app.call('/user/me', { token }), 'unauthenticated');
    expectProblem(await signIn(email), 'invalid_credentials');
    expect((await signIn(newEmail)).json()).toMatchObject({ user: { email: newEmail } });
    expect((await readAccountMail(app, email)).at(-1)?.template).toBe('email-changed');
  });

  test('of another account is not revealed, and not taken over', async () => {
    const other = await createAccount();
    const { token } = await createAccount();
    const body = { current_password: PASSWORD, new_email: other.email };
    expect((await post('/user/me/change-email', body, { token })).statusCode).toBe(202);
    expect((await readAccountMail(app, other.email)).at(-1)).toMatchObject({
      template: 'account-exists',
      token: '',
    });
  });

  test('can be requested again, three times an hour; only the newest token works', async () => {
    const { token } = await createAccount();
    const newEmail = newAddress();
    const request = () =>
      post('/user/me/change-email', { current_password: PASSWORD, new_email: newEmail }, { token });
    await request();
    const first = await latestToken(newEmail);
    await request();
    const second = await latestToken(newEmail);
    expectProblem(await post('/auth/change-email/confirm', { token: first }), 'invalid_credentials');
    expect((await request()).statusCode).toBe(202);
    expectProblem(await request(), 'rate_limited');
    expectProblem(await post('/auth/change-email/confirm', { token: second }), 'invalid_credentials');
    const confirmed = await post('/auth/change-email/confirm', { token: await latestToken(newEmail) });
    expect(confirmed.statusCode).toBe(204);
  });

  test('needs the current password', async () => {
    const { token } = await createAccount();
    const body = { current_password: 'wrong-password-1', new_email: newAddress() };
    expectProblem(await post('/user/me/change-email', body, { token }), 'invalid_credentials');
  });
});

describe('the profile', () => {
  test('is changed field by field', async () => {
    const { token } = await createAccount();
    const patch = (body: unknown) => app.call('/user/me', { method: 'PATCH', token, body });
    const picture = 'https://pictures.example/ada.png';
    expect((await patch({ avatar_url: picture })).json()).toMatchObject({
      name: 'Ada Lovelace',
      avatar_url: picture,
    });
    expect((await patch({ name: null })).json()).toMatchObject({ name: null, avatar_url: picture });
    for (const body of [
      { avatar_url: 'javascript:alert(1)' },
      { name: 'x@y.example' },
      { email: 'x@y.example' },
    ])
      expectProblem(await patch(body), 'validation_error');
  });

  test('lists the organizations of the person', async () => {
    const { token } = await createAccount();
    const { data } = (await app.call('/user/me/organizations', { token })).json();
    expect(data).toMatchObject([{ name: 'Test', role: 'owner', slug: expect.stringMatching(/^org_/) }]);
  });
});

test('mailed tokens are stored only as hashes and sealed', async () => {
  const { email } = await signUp();
  const token = await latestToken(email);
  expect(token).toMatch(/^\w{43}$/);
  const rows = await query(
    app.worker,
    sql`select n::text as row from notifications n where email = ${email}
    union all select s::text from sign_ups s where email = ${email}
    union all select command::text from outbox`,
  );
  expect(JSON.stringify([rows, app.commands])).not.toContain(token);
});

describe('another organization', () => {
  const create = (token: string, body: unknown = { name: 'Difference Engines' }) =>
    app.call('/user/me/organizations', { method: 'POST', token, body });

  test('belongs to its creator, has two environments, and is in its own audit log', async () => {
    const { token, organizationId: first } = await createAccount();
    const created = await create(token);
    expect(created.statusCode).toBe(201);
    expect(created.json()).toMatchObject({ object: 'membership', name: 'Difference Engines', role: 'owner' });
    const { id } = created.json();
    expect(id).not.toBe(first);
    const headers = { 'x-org-id': id };
    const environments = (await app.call('/org/environments', { token, headers })).json();
    expect(environments.data.map(({ kind }: { kind: string }) => kind).sort()).toEqual([
      'production',
      'sandbox',
    ]);
    const log = (await app.call('/org/audit-log', { token, headers })).json();
    expect(log.data).toMatchObject([
      {
        action: 'organization.created',
        actor: { name: 'Ada Lovelace' },
        resource: { id, name: 'Difference Engines' },
        details: { name: 'Difference Engines' },
      },
    ]);
  });

  test('has a slug of its own if another organization has its name', async () => {
    const { token } = await createAccount();
    const name = `Twin ${Date.now()}`;
    const [one, two] = [await create(token, { name }), await create(token, { name })];
    expect(one.statusCode).toBe(201);
    expect(two.statusCode).toBe(201);
    expect(two.json().slug).not.toBe(one.json().slug);
  });

  test('is refused with a name that mail must not show', async () => {
    const { token } = await createAccount();
    expectProblem(await create(token, { name: 'Visit https://evil.example' }), 'validation_error');
  });

  test('is refused to a session from a single sign-on, which could not enter it', async () => {
    const { userId } = await createAccount();
    const { token } = await createTestSession(app.worker, userId, { method: 'sso' });
    expectProblem(await create(token), 'policy_violation');
  });
});
