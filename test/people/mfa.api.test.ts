import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { purgeSignIns } from '../../domain/people/purge-sign-ins.ts';
import { sha256 } from '../../platform/crypto.ts';
import { readAccountMail } from '../support/account-mail.ts';
import {
  createAccountQuickly as createAccount,
  newNetwork,
  PASSWORD,
  type QuickAccount,
  signIn,
} from '../support/accounts.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { enrollTotp, totpCode } from '../support/totp.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let account: QuickAccount;
beforeEach(async () => {
  account = await createAccount(app);
});

const post = (path: string, body?: unknown, token?: string) =>
  app.call(path, {
    method: 'POST',
    headers: newNetwork(),
    ...(body === undefined ? {} : { body }),
    ...(token === undefined ? {} : { token }),
  });

async function setUp(token = account.token) {
  const response = await post('/auth/mfa/totp/setup', {}, token);
  return response.json<{ enrollment_id: string; secret: string; otpauth_uri: string; qr_svg: string }>();
}

const enroll = (token = account.token) => enrollTotp((path, body) => post(path, body, token));

async function startChallenge(): Promise<string> {
  return (await signIn(app, account.email)).json().mfa_token;
}

const complete = (mfa_token: string, code: string, method = 'totp') =>
  post('/auth/mfa/challenge', { mfa_token, method, code });

const makeStale = (token: string) =>
  query(
    app.worker,
    sql`update sessions set authenticated_at = now() - interval '11 minutes'
    where user_id = ${account.userId} and ${token} <> ''`,
  );

describe('enrolling an authenticator app', () => {
  test('gives a secret with its QR code, and recovery codes after the first code', async () => {
    const setup = await setUp();
    expect(setup.otpauth_uri).toContain(`secret=${setup.secret}`);
    expect(setup.otpauth_uri).toContain(encodeURIComponent(account.email));
    expect(setup.qr_svg).toMatch(/^<svg[^>]*>/);
    expect((await app.call('/auth/mfa/status', { token: account.token })).json()).toMatchObject({
      enabled: false,
    });
    const body = { enrollment_id: setup.enrollment_id, code: await totpCode(setup.secret) };
    const verified = (await post('/auth/mfa/totp/verify', body, account.token)).json();
    expect(verified.enrollment).toMatchObject({
      id: setup.enrollment_id,
      type: 'totp',
      name: 'Authenticator app',
    });
    expect(new Set(verified.recovery_codes).size).toBe(10);
    expect((await app.call('/auth/mfa/status', { token: account.token })).json()).toMatchObject({
      enabled: true,
      enrollments: [{ id: setup.enrollment_id }],
      recovery_codes_left: 10,
    });
    expect((await readAccountMail(app, account.email)).at(-1)?.template).toBe('mfa-added');
  });

  test('takes a code alone for the enrollment that waits, and says if none does', async () => {
    const code = (value: string) => post('/auth/mfa/totp/verify', { code: value }, account.token);
    expectProblem(await code('000000'), 'not_found');
    await setUp();
    const { enrollment_id: id, secret } = await setUp();
    expectProblem(await code('000000'), 'invalid_credentials');
    const verified = await code(await totpCode(secret));
    expect(verified.json()).toMatchObject({ enrollment: { id }, recovery_codes: expect.any(Array) });
    expectProblem(await code(await totpCode(secret)), 'not_found');
  });

  test('needs a right code, and signing in stays as it was until then', async () => {
    const { enrollment_id } = await setUp();
    const wrong = await post('/auth/mfa/totp/verify', { enrollment_id, code: '000000' }, account.token);
    expectProblem(wrong, 'invalid_credentials');
    expect((await signIn(app, account.email)).json()).toMatchObject({
      token: expect.stringMatching(/^sst_/),
    });
  });

  test('has an hour to be completed; then the secret is deleted', async () => {
    const { enrollment_id, secret } = await setUp();
    const second = await setUp();
    const age = (id: string, interval: string) =>
      query(
        app.worker,
        sql`update mfa_enrollments set created_at = now() - ${interval}::interval where id = ${id} returning id`,
      );
    expect(await age(enrollment_id, '1 minute')).toEqual([]);
    await age(second.enrollment_id, '61 minutes');
    const verify = async ({ enrollment_id: id, secret: key }: { enrollment_id: string; secret: string }) =>
      post('/auth/mfa/totp/verify', { enrollment_id: id, code: await totpCode(key) }, account.token);
    for (const setup of [{ enrollment_id, secret }, second]) expectProblem(await verify(setup), 'not_found');
    await purgeSignIns(app.worker);
    const left = await query(
      app.worker,
      sql`select id from mfa_enrollments where user_id = ${account.userId}`,
    );
    expect(left).toEqual([]);
    expect((await verify(await setUp())).statusCode).toBe(200);
    await purgeSignIns(app.worker);
    expect((await app.call('/auth/mfa/status', { token: account.token })).json().enabled).toBe(true);
  });

  test('needs a recent sign-in', async () => {
    await makeStale(account.token);
    expectProblem(await post('/auth/mfa/totp/setup', {}, account.token), 'session_expired');
  });

  test("does not complete another person's enrollment", async () => {
    const { enrollment_id, secret } = await setUp();
    const other = await createAccount(app);
    const body = { enrollment_id, code: await totpCode(secret) };
    expectProblem(await post('/auth/mfa/totp/verify', body, other.token), 'not_found');
  });

  test('makes a session full that could only enroll', async () => {
    await query(
      app.worker,
      sql`insert into organization_policies (org_id, require_mfa, updated_at)
      select org_id, true, now() from members where user_id = ${account.userId}`,
    );
    const { token } = (await signIn(app, account.email)).json();
    expectProblem(await app.call('/org', { token }), 'policy_violation');
    await enroll(token);
    expect((await app.call('/org', { token })).statusCode).toBe(200);
  });

  test('stores the secret and recovery codes unreadable', async () => {
    const { secret, recoveryCodes } = await enroll();
    const rows = await query(
      app.worker,
      sql`select e::text as row from mfa_enrollments e union all select c::text from mfa_recovery_codes c
      union all select n::text from notifications n`,
    );
    for (const text of [secret, ...recoveryCodes]) expect(JSON.stringify(rows)).not.toContain(text);
  });
});

describe('signing in with a second factor', () => {
  test('takes the code of the app, once per step', async () => {
    const { secret } = await enroll();
    const code = await totpCode(secret);
    const first = await complete(await startChallenge(), code);
    expect(first.json()).toMatchObject({
      token: expect.stringMatching(/^sst_/),
      user: { mfa_enabled: true },
    });
    expectProblem(await complete(await startChallenge(), code), 'invalid_credentials');
    const older = await totpCode(secret, -1);
    expectProblem(await complete(await startChallenge(), older), 'invalid_credentials');
    expect((await complete(await startChallenge(), await totpCode(secret, 1))).statusCode).toBe(200);
  });

  test('takes a code once of two concurrent requests', async () => {
    const { secret } = await enroll();
    const code = await totpCode(secret);
    const tokens = [await startChallenge(), await startChallenge(), await startChallenge()];
    const statuses = (await Promise.all(tokens.map((token) => complete(token, code)))).map(
      (r) => r.statusCode,
    );
    expect(statuses.sort()).toEqual([200, 401, 401]);
  });

  test.each([
    ['codes of five steps ago', (secret: string) => totpCode(secret, -5)],
    ['words', async () => 'abcdef'],
    ['seven digits', async (secret: string) => `${await totpCode(secret)}0`],
    ['an empty code of spaces', async () => '      '],
    ['a recovery code that was never issued', async () => 'aaaaaa-aaaaaa-aaaaa'],
  ])('rejects %s', async (_case, codeFor) => {
    const { secret } = await enroll();
    expectProblem(await complete(await startChallenge(), await codeFor(secret)), 'invalid_credentials');
  });

  test('is void after five wrong codes, also for the right one', async () => {
    const { secret } = await enroll();
    const mfaToken = await startChallenge();
    for (let count = 0; count < 5; count += 1)
      expectProblem(await complete(mfaToken, '000000'), 'invalid_credentials');
    expectProblem(await complete(mfaToken, await totpCode(secret)), 'invalid_credentials');
    expect((await complete(await startChallenge(), await totpCode(secret))).statusCode).toBe(200);
  });

  test('cannot be guessed with a new token for every few codes, and the person is warned', async () => {
    const { secret } = await enroll();
    const tokens = [await startChallenge(), await startChallenge(), await startChallenge()];
    const [first = '', second = '', third = ''] = tokens;
    const guess = async (token: string) => (await complete(token, '000000')).json<{ code: string }>().code;
    for (let count = 0; count < 5; count += 1) expect(await guess(first)).toBe('invalid_credentials');
    // The sixth guess counts with the five of another token, and delays the next one: by a second, which a slow machine may
    // take, so the test makes it longer.
    expect(await guess(second)).toBe('invalid_credentials');
    const delayed = await query(
      app.worker,
      sql`update sign_in_attempts set blocked_until = blocked_until + interval '1 minute'
      where key_hash = ${sha256(`account:mfa:${account.userId}`)} and failures = 6 and blocked_until > last_attempt_at
      returning failures`,
    );
    expect(delayed).toHaveLength(1);
    expect(await guess(second)).toBe('rate_limited');
    expectProblem(await complete(third, await totpCode(secret)), 'rate_limited');
    const mails = await readAccountMail(app, account.email);
    expect(mails.filter(({ template }) => template === 'mfa-failed')).toHaveLength(1);
  });

  test('counts concurrent wrong codes', async () => {
    const { secret } = await enroll();
    const mfaToken = await startChallenge();
    await Promise.all(Array.from({ length: 8 }, () => complete(mfaToken, '000000')));
    expectProblem(await complete(mfaToken, await totpCode(secret)), 'invalid_credentials');
  });

  test('uses a token once, and not after ten minutes', async () => {
    const { secret } = await enroll();
    const used = await startChallenge();
    await complete(used, await totpCode(secret));
    expectProblem(await complete(used, await totpCode(secret, 1)), 'invalid_credentials');
    const expired = await startChallenge();
    await query(
      app.worker,
      sql`update mfa_challenges set expires_at = date_trunc('milliseconds', now()) where user_id = ${account.userId}`,
    );
    expectProblem(await complete(expired, await totpCode(secret, 1)), 'invalid_credentials');
  });

  test('is void after the password was changed', async () => {
    const { secret } = await enroll();
    const mfaToken = await startChallenge();
    const body = { current_password: PASSWORD, new_password: 'another-marble-otter-9' };
    expect((await post('/user/me/change-password', body, account.token)).statusCode).toBe(204);
    expectProblem(await complete(mfaToken, await totpCode(secret)), 'invalid_credentials');
  });
});

describe('a recovery code', () => {
  test('replaces the factor once, in any spelling, and the person is informed', async () => {
    const { recoveryCodes } = await enroll();
    const [code = ''] = recoveryCodes;
    const spelled = code.toUpperCase().replaceAll('-', ' ');
    expect((await complete(await startChallenge(), spelled, 'recovery_code')).statusCode).toBe(200);
    expectProblem(await complete(await startChallenge(), code, 'recovery_code'), 'invalid_credentials');
    expect((await readAccountMail(app, account.email)).at(-1)?.template).toBe('recovery-code-used');
    const status = (await app.call('/auth/mfa/status', { token: account.token })).json();
    expect(status.recovery_codes_left).toBe(9);
  });

  test('of another person is rejected', async () => {
    await enroll();
    const other = await createAccount(app);
    const { recoveryCodes } = await enroll(other.token);
    const foreign = await complete(await startChallenge(), recoveryCodes[0] ?? '', 'recovery_code');
    expectProblem(foreign, 'invalid_credentials');
  });

  test('stops working when the codes are replaced', async () => {
    const { recoveryCodes } = await enroll();
    const replaced = await post('/auth/mfa/recovery-codes/regenerate', undefined, account.token);
    expect(replaced.json().recovery_codes).toHaveLength(10);
    const old = await complete(await startChallenge(), recoveryCodes[0] ?? '', 'recovery_code');
    expectProblem(old, 'invalid_credentials');
    const fresh = await complete(await startChallenge(), replaced.json().recovery_codes[0], 'recovery_code');
    expect(fresh.statusCode).toBe(200);
  });

  test('is not given to a person without a factor', async () => {
    expectProblem(await post('/auth/mfa/recovery-codes/regenerate', undefined, account.token), 'conflict');
  });
});

describe('removing a factor', () => {
  const remove = (enrollmentId: string, token = account.token) =>
    app.call(`/auth/mfa/${enrollmentId}`, { method: 'DELETE', token });

  test('ends the request for it, and takes the recovery codes along', async () => {
    const { enrollmentId } = await enroll();
    expect((await remove(enrollmentId)).statusCode).toBe(204);
    expect((await signIn(app, account.email)).json().token).toMatch(/^sst_/);
    expect((await app.call('/auth/mfa/status', { token: account.token })).json()).toEqual({
      object: 'mfa_status',
      enabled: false,
      enrollments: [],
      recovery_codes_left: 0,
    });
    expect((await readAccountMail(app, account.email)).at(-1)?.template).toBe('mfa-removed');
  });

  test('needs a recent sign-in', async () => {
    const { enrollmentId } = await enroll();
    await makeStale(account.token);
    expectProblem(await remove(enrollmentId), 'session_expired');
  });

  test('is refused for the last one if an organization requires one', async () => {
    const { enrollmentId } = await enroll();
    await query(
      app.worker,
      sql`insert into organization_policies (org_id, require_mfa, updated_at)
      select org_id, true, now() from members where user_id = ${account.userId}`,
    );
    expect(expectProblem(await remove(enrollmentId), 'policy_violation')).toMatchObject({
      policy: 'require_mfa',
    });
  });

  test("does not remove another person's factor", async () => {
    const { enrollmentId } = await enroll();
    const other = await createAccount(app);
    expectProblem(await remove(enrollmentId, other.token), 'not_found');
  });
});
