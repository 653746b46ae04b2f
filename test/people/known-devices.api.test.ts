import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { sha256 } from '../../platform/crypto.ts';
import { newId } from '../../platform/ids.ts';
import {
  createAccountQuickly,
  newNetwork,
  PASSWORD,
  type QuickAccount,
  signIn,
} from '../support/accounts.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';
import { enrollTotp, totpCode } from '../support/totp.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

type Answer = Awaited<ReturnType<typeof signIn>>;
const cookieOf = ({ cookies }: Answer) => cookies.find(({ name }) => name === 'device');
const withDevice = (value: string | undefined) => ({ ...newNetwork(), cookie: `device=${value}` });

/** Strangers have used up the attempts of the account. */
async function block(account: string): Promise<void> {
  await query(
    app.worker,
    sql`insert into sign_in_attempts (key_hash, failures, last_attempt_at, blocked_until)
    values (${sha256(`account:${account}`)}, 17, now(), now() + interval '15 minutes')
    on conflict (key_hash) do update set blocked_until = excluded.blocked_until returning key_hash`,
  );
}

const failuresOf = async ({ userId }: Pick<QuickAccount, 'userId'>) => {
  const rows = await query<{ failures: number }>(
    app.worker,
    sql`select failures from known_devices where user_id = ${userId} order by token_hash`,
  );
  return rows.map(({ failures }) => failures);
};

/** Signs in, and returns the value of the cookie. */
async function knownDevice(account: QuickAccount): Promise<string> {
  const cookie = cookieOf(await signIn(app, account.email));
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax', path: '/', maxAge: 90 * 86_400 });
  return cookie?.value ?? '';
}

/** @returns the secret. */
async function addTotp(account: QuickAccount): Promise<string> {
  const { token } = account;
  return (await enrollTotp((path, body) => app.call(path, { method: 'POST', token, body }))).secret;
}

describe('a known device', () => {
  test('signs in while strangers have used up the attempts of the account', async () => {
    const account = await createAccountQuickly(app);
    const device = await knownDevice(account);
    const guesses = Array.from({ length: 7 }, () => signIn(app, account.email, 'wrong guess of a stranger'));
    expect((await Promise.all(guesses)).map(({ statusCode }) => statusCode)).toContain(429);
    await block(account.email);
    expectProblem(await signIn(app, account.email), 'rate_limited');
    const answer = await signIn(app, account.email, PASSWORD, withDevice(device));
    expect(answer.statusCode).toBe(200);
    // It stays the same device, and gives strangers no new attempts.
    expect(cookieOf(answer)?.value).toBe(device);
    expectProblem(await signIn(app, account.email), 'rate_limited');
  });

  test('signs in while others in its network have used up the attempts of the network', async () => {
    const account = await createAccountQuickly(app);
    const device = await knownDevice(account);
    const headers = { 'x-forwarded-for': '2001:db8:77:1::1' };
    await query(
      app.worker,
      sql`insert into sign_in_attempts (key_hash, failures, last_attempt_at, blocked_until)
      values (${sha256('network:8193:3512:119:1')}, 70, now(), now() + interval '15 minutes') returning key_hash`,
    );
    expectProblem(await signIn(app, account.email, PASSWORD, headers), 'rate_limited');
    const known = { ...headers, cookie: `device=${device}` };
    expect((await signIn(app, account.email, PASSWORD, known)).statusCode).toBe(200);
  });

  test('has ten failures, also at the same time, then counts like others', async () => {
    const account = await createAccountQuickly(app);
    const device = await knownDevice(account);
    await block(account.email);
    const guesses = Array.from({ length: 12 }, () => signIn(app, account.email, 'wrong', withDevice(device)));
    const statuses = (await Promise.all(guesses)).map(({ statusCode }) => statusCode);
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(10);
    while ((await failuresOf(account))[0] !== 10)
      expectProblem(await signIn(app, account.email, 'wrong', withDevice(device)), 'invalid_credentials');
    expectProblem(await signIn(app, account.email, PASSWORD, withDevice(device)), 'rate_limited');
    await query(
      app.worker,
      sql`update sign_in_attempts set blocked_until = now() where key_hash = ${sha256(`account:${account.email}`)}`,
    );
    expect((await signIn(app, account.email, PASSWORD, withDevice(device))).statusCode).toBe(200);
    expect(await failuresOf(account)).toEqual([0]);
  });

  test('does not skip the second factor, whose codes it guesses no more often', async () => {
    const account = await createAccountQuickly(app);
    const secret = await addTotp(account);
    const first = await signIn(app, account.email);
    // Not complete yet.
    expect(first.json()).toMatchObject({ mfa_required: true });
    expect(cookieOf(first)).toBeUndefined();
    const complete = (mfa_token: string, code: string, headers: Record<string, string> = newNetwork()) =>
      app.call('/auth/mfa/challenge', {
        method: 'POST',
        headers,
        body: { mfa_token, method: 'totp', code },
      });
    const completed = await complete(first.json().mfa_token, await totpCode(secret));
    const device = cookieOf(completed)?.value;
    expect(device).toMatch(/^\w{43}$/);
    await block(account.email);
    await block(`mfa:${account.userId}`);
    for (let attempt = 1; attempt <= 10; attempt += 1) {
      const { mfa_token } = (await signIn(app, account.email, PASSWORD, withDevice(device))).json();
      expectProblem(await complete(mfa_token, '000000', withDevice(device)), 'invalid_credentials');
      // The right password does not give the device its failures back.
      expect(await failuresOf(account)).toEqual([attempt]);
    }
    expectProblem(await signIn(app, account.email, PASSWORD, withDevice(device)), 'rate_limited');
  });

  test('of one person is none of another, and a browser knows several', async () => {
    const [ada, bob] = [await createAccountQuickly(app), await createAccountQuickly(app)];
    const device = await knownDevice(ada);
    await block(bob.email);
    expectProblem(await signIn(app, bob.email, PASSWORD, withDevice(device)), 'rate_limited');
    await query(
      app.worker,
      sql`delete from sign_in_attempts where key_hash = ${sha256(`account:${bob.email}`)}`,
    );
    const both = cookieOf(await signIn(app, bob.email, PASSWORD, withDevice(device)))?.value ?? '';
    expect(both.split('.')).toHaveLength(2);
    await block(ada.email);
    await block(bob.email);
    for (const { email } of [ada, bob])
      expect((await signIn(app, email, PASSWORD, withDevice(both))).statusCode).toBe(200);
  });

  test.each(['', 'x', 'a'.repeat(43), `${'a'.repeat(43)}.`.repeat(400), "' or 1=1 --"])(
    'is not %#: another value of the cookie counts for nothing',
    async (value) => {
      const account = await createAccountQuickly(app);
      const answer = await signIn(app, account.email, PASSWORD, withDevice(value));
      expect(answer.statusCode).toBe(200);
      expect(cookieOf(answer)?.value.split('.').length).toBeLessThanOrEqual(5);
      await block(account.email);
      expectProblem(await signIn(app, account.email, PASSWORD, withDevice(value)), 'rate_limited');
    },
  );

  test('is stored as a hash, for 90 days, and a person has at most 50', async () => {
    const account = await createAccountQuickly(app);
    const device = await knownDevice(account);
    const read = () =>
      query<{ tokenHash: Buffer; days: number }>(
        app.worker,
        sql`select token_hash as "tokenHash", round(extract(epoch from expires_at - now()) / 86400)::int as days
        from known_devices where user_id = ${account.userId}`,
      );
    expect(await read()).toEqual([{ tokenHash: sha256(device), days: 90 }]);
    await signIn(app, account.email, PASSWORD, withDevice(device));
    await query(
      app.worker,
      sql`insert into known_devices (token_hash, user_id, failures, created_at, expires_at)
      select sha256(convert_to(${newId('request')} || i, 'UTF8')), ${account.userId}, 0, now(), now() + interval '1 day'
      from generate_series(1, 60) i returning token_hash`,
    );
    await signIn(app, account.email);
    expect(await read()).toHaveLength(50);
    // The one that was used again stays.
    await block(account.email);
    expect((await signIn(app, account.email, PASSWORD, withDevice(device))).statusCode).toBe(200);
    await query(
      app.worker,
      sql`update known_devices set expires_at = date_trunc('milliseconds', now()) where user_id = ${account.userId} returning user_id`,
    );
    expectProblem(await signIn(app, account.email, PASSWORD, withDevice(device)), 'rate_limited');
  });

  type Ending = [string, (account: QuickAccount, token: string) => Promise<Answer>];
  const post = (path: string, token: string, body: object) => app.call(path, { method: 'POST', token, body });
  const NEW_PASSWORD = 'lively-heron-quartz-19';
  const ENDINGS: Ending[] = [
    [
      'a change of the password',
      (_account, token) =>
        post('/user/me/change-password', token, { current_password: PASSWORD, new_password: NEW_PASSWORD }),
    ],
    ['signing out everywhere', (_account, token) => post('/user/me/sessions/revoke-all', token, {})],
    [
      'signing out everywhere else',
      (_account, token) => post('/user/me/sessions/revoke-all', token, { keep_current: true }),
    ],
    [
      'staff who end the sessions',
      async ({ userId }) =>
        post(`/admin/users/${userId}/revoke-sessions`, (await createStaff(app)).token, {
          note: 'Ticket 4711',
        }),
    ],
    [
      'the deletion of the account',
      (_account, token) =>
        app.call('/user/me', { method: 'DELETE', token, body: { current_password: PASSWORD } }),
    ],
  ];
  test.each(ENDINGS)('ends with %s', async (_what, end) => {
    const account = await createAccountQuickly(app);
    const signedIn = await signIn(app, account.email);
    expect(await failuresOf(account)).toEqual([0]);
    expect((await end(account, signedIn.json().token)).statusCode).toBeLessThan(300);
    expect(await failuresOf(account)).toEqual([]);
  });

  test('stays known after signing out', async () => {
    const account = await createAccountQuickly(app);
    const answer = await signIn(app, account.email);
    await post('/auth/logout', answer.json().token, {});
    await block(account.email);
    const again = await signIn(app, account.email, PASSWORD, withDevice(cookieOf(answer)?.value));
    expect(again.statusCode).toBe(200);
  });
});

test('the cookie of a service behind TLS begins with __Host-', async () => {
  const account = await createAccountQuickly(app);
  const { createCookies } = await import('../../api/plugins/cookies.ts');
  const set: unknown[] = [];
  const reply = { setCookie: (...args: unknown[]) => set.push(args) } as never;
  createCookies({ publicUrl: 'https://mail.test' }).set(reply, 'device', account.userId, {
    maxAgeSeconds: 1,
  });
  expect(set).toMatchObject([['__Host-device', account.userId, { secure: true, path: '/', httpOnly: true }]]);
});

describe('the checks of a signed-in person', () => {
  const change = (token: string, current_password: string) =>
    app.call('/user/me/change-password', {
      method: 'POST',
      token,
      headers: newNetwork(),
      body: { current_password, new_password: 'lively-heron-quartz-19' },
    });

  test('do not wait because strangers guess at the sign-in', async () => {
    const account = await createAccountQuickly(app);
    await block(account.email);
    expect((await change(account.token, PASSWORD)).statusCode).toBe(204);
  });

  test('are limited by a counter of the person, which does not keep others from signing in', async () => {
    const account = await createAccountQuickly(app);
    const problems: string[] = [];
    for (let guess = 0; guess < 8; guess += 1)
      problems.push((await change(account.token, 'wrong guess')).json().code);
    expect(problems.slice(0, 5)).toEqual(Array(5).fill('invalid_credentials'));
    expect(problems).toContain('rate_limited');
    expect((await signIn(app, account.email)).statusCode).toBe(200);
  });
});
