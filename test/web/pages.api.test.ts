import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { generate } from 'otplib';
import { readAccountMail } from '../support/account-mail.ts';
import { createAccountQuickly as createAccount, newAddress, PASSWORD } from '../support/accounts.ts';
import { createPageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

const named = useTestApp({ config: { PUBLIC_URL: 'http://localhost:3000' } });

const latestToken = async (email: string) => (await readAccountMail(app, email)).at(-1)?.token ?? '';

async function signedIn(email: string, password = PASSWORD) {
  const browser = createPageClient(app);
  await browser.open('/login');
  await browser.submit('/login', { email, password });
  return browser;
}

const secretOf = (html: string) =>
  /<code(?: class="secret"[^>]*)?>([A-Z2-7]{32}|ask_\w+)</.exec(html)?.[1] ?? '';

describe('an address without a page', () => {
  const open = (url: string, accept = 'text/html,application/xhtml+xml,*/*;q=0.8') =>
    app.app.inject({ method: 'GET', url, headers: { accept } });

  test.each([
    ['/admin/nothing', 404],
    ['/admin/organizations/org_1/suspend', 405],
  ])('%s is readable in a browser, and a problem for programs', async (url, status) => {
    const page = await open(url);
    expect(page.statusCode).toBe(status);
    expect(page.headers['content-type']).toContain('text/html');
    expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(page.body).toContain('/assets/style.css');
    expect(page.body).toContain('Go to the first page');
    expect(page.body).not.toContain('/api/v1');
    expect((await open(url, 'application/json')).json()).toMatchObject({ status });
    expect((await open('/api/v1/nothing')).json()).toMatchObject({ status: 404 });
  });
});

describe('pages', () => {
  test('lead from sign-up through the mailed link to the account', async () => {
    const browser = createPageClient(app);
    const email = newAddress();
    await browser.open('/signup');
    const sent = await browser.submit('/signup', {
      name: 'Ada Lovelace',
      organization_name: 'Analytical Engines',
      email,
      password: PASSWORD,
    });
    expect(sent.body).toContain('Check your mailbox');
    expect(sent.body).not.toContain('href="undefined"');
    const link = `/verify-email?token=${await latestToken(email)}`;
    // Scanners open links, too.
    for (let count = 0; count < 3; count += 1) expect((await browser.open(link)).statusCode).toBe(200);
    const first = await browser.submit('/verify-email');
    expect([first.statusCode, browser.path]).toEqual([200, '/overview']);
    expect(secretOf(first.body)).toMatch(/^ask_live_/);
    const account = await browser.open('/account');
    expect(account.body).toContain(email);
    const organization = await browser.open('/settings');
    expect(organization.body).toContain('Analytical Engines');
  });

  test('ask for the password of the sign-up in another browser', async () => {
    const browser = createPageClient(app);
    const email = newAddress();
    await browser.open('/signup');
    await browser.submit('/signup', { name: 'Ada', organization_name: 'Engines', email, password: PASSWORD });
    const other = createPageClient(app);
    await other.open(`/verify-email?token=${await latestToken(email)}`);
    const refused = await other.submit('/verify-email', { password: 'a wrong password 1' });
    expect(refused.statusCode).toBe(401);
    expect(refused.body).toContain('role="alert"');
    const first = await other.submit('/verify-email', { password: PASSWORD });
    expect([first.statusCode, other.path]).toEqual([200, '/overview']);
    expect(secretOf(first.body)).toMatch(/^ask_live_/);
  });

  test('sign in and out, and lead back to the page that asked for it', async () => {
    const { email } = await createAccount(app);
    const browser = createPageClient(app);
    await browser.open('/settings');
    expect(browser.path).toBe('/login?next=%2Fsettings');
    const wrong = await browser.submit('/login', { email, password: 'a wrong password 1' });
    expect(wrong.statusCode).toBe(401);
    expect(wrong.body).toContain(email);
    expect(wrong.body).not.toContain('a wrong password 1');
    await browser.submit('/login', { email, password: PASSWORD });
    expect(browser.path).toBe('/settings');
    await browser.submit('/logout');
    expect(browser.cookies.has('session')).toBe(false);
    await browser.open('/account');
    expect(browser.path).toMatch(/^\/login/);
  });

  test('never lead to another site after signing in', async () => {
    const { email } = await createAccount(app);
    const browser = createPageClient(app);
    await browser.open('/login?next=//evil.example/');
    await browser.submit('/login', { email, password: PASSWORD, next: 'https://evil.example/' });
    expect(browser.path).toBe('/account');
  });

  test('enroll an authenticator app, and ask for its code', async () => {
    const { email } = await createAccount(app);
    const browser = await signedIn(email);
    await browser.open('/account');
    const setup = await browser.submit('/account/factors/totp', { name: 'My phone' });
    const secret = secretOf(setup.body);
    const wrongCode = await browser.submit('/account/factors/totp/confirm', { code: '000000' });
    expect(wrongCode.statusCode).toBe(401);
    // The app may not have the secret yet.
    expect(secretOf(wrongCode.body)).toBe(secret);
    expect(wrongCode.body).toContain('alt="QR code with the secret"');
    expect(wrongCode.body).toContain('Code is not the one that the app shows now.');
    const codes = await browser.submit('/account/factors/totp/confirm', { code: await generate({ secret }) });
    const [recoveryCode = ''] = /(?<=codes-list">)\w\S+/.exec(codes.body) ?? [];
    expect(recoveryCode).not.toBe('');

    const other = await signedIn(email);
    expect(other.path).toBe('/login/mfa?next=%2Foverview');
    const wrong = await other.submit('/login/mfa', { method: 'totp', code: '000000' });
    expect(wrong.statusCode).toBe(401);
    await other.submit('/login/mfa', { method: 'recovery_code', code: recoveryCode });
    expect(other.path).toBe('/overview');

    // The token of a pending sign-in stays in the browser that began it.
    const third = createPageClient(app);
    await third.open('/login/mfa');
    expect(third.path).toMatch(/^\/login/);
  });

  test('reset a password and change an address by mailed links', async () => {
    const { email } = await createAccount(app);
    const browser = createPageClient(app);
    await browser.open('/forgot-password');
    await browser.submit('/forgot-password', { email });
    expect(browser.path).toBe('/login?notice=check-mail');
    await browser.open(`/reset-password?token=${await latestToken(email)}`);
    const weak = await browser.submit('/reset-password', { password: 'short' });
    expect(weak.statusCode).toBe(400);
    expect(weak.body).toMatch(/id="field-password-error">Use at least 12 characters\./);
    const password = 'seven-brave-lanterns-12';
    await browser.submit('/reset-password', { password });
    const owner = await signedIn(email, password);
    expect(owner.path).toBe('/overview');
    await owner.open('/account');

    const newEmail = newAddress();
    await owner.submit('/account/email', { new_email: newEmail, current_password: password });
    await owner.open(`/change-email?token=${await latestToken(newEmail)}`);
    await owner.submit('/change-email');
    expect(owner.path).toBe('/login?notice=email-changed');
    expect((await signedIn(newEmail, password)).path).toBe('/overview');
  });

  test('ask for the current password on the page where it is missing', async () => {
    const { email } = await createAccount(app);
    const browser = await signedIn(email);
    await browser.open('/account');
    for (const [action, field, value] of [
      ['/account/password', 'new_password', 'seven-brave-lanterns-12'],
      ['/account/email', 'new_email', newAddress()],
    ] as const) {
      const page = await browser.submit(action, { [field]: value, current_password: '' });
      expect(page.statusCode).toBe(400);
      expect(page.body).toContain('>Fill this in.</p>');
    }
  });

  test('ask to sign in again where a fresh sign-in is required', async () => {
    const { email, userId } = await createAccount(app);
    const browser = await signedIn(email);
    await browser.open('/account');
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '1 hour' where user_id = ${userId}`,
    );
    await browser.submit('/account/factors/totp', { name: 'Phone' });
    expect(browser.path).toBe('/login?next=%2Faccount&notice=sign-in-again');
  });

  test('manage members and policies as far as the role allows', async () => {
    const { email, userId } = await createAccount(app);
    const browser = await signedIn(email);
    const [membership] = await query<{ id: string }>(
      app.worker,
      sql`select org_id as id from members where user_id = ${userId}`,
    );
    const organizationId = membership?.id ?? '';
    const org = `?org=${organizationId}`;
    const viewerId = await createTestUser(app.worker, { organizationId, role: 'viewer' });

    await browser.open(`/organization${org}`);
    await browser.open('/members');
    await browser.submit('/members/role', { user_id: viewerId, role: 'developer' });
    expect(browser.path).toBe('/members?notice=member-changed');
    await browser.open('/settings/policies');
    const locked = await browser.submit('/settings/policies', {
      session_max_age_hours: '12',
      allowed_cidrs: '203.0.113.0/24',
    });
    expect(locked.statusCode).toBe(409);
    expect(locked.body).toContain('lock you out');
    await browser.submit('/settings/policies', { session_max_age_hours: '12', allowed_cidrs: '' });
    expect(browser.path).toBe('/settings/policies?notice=saved');

    const session = await createTestSession(app.worker, viewerId);
    const developer = createPageClient(app);
    developer.cookies.set('session', session.token);
    const page = await developer.open('/settings');
    expect(page.body).toContain('/settings/retention');
    expect(page.body).not.toContain('/settings/policies');
    expect(page.body).not.toContain(email);
  });

  test('let a person of several organizations choose one', async () => {
    const { userId, email } = await createAccount(app);
    const other = await createAccount(app);
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at)
      select org_id, ${userId}, 'viewer', now() from members where user_id = ${other.userId}`,
    );
    const browser = await signedIn(email);
    const choice = await browser.open('/settings');
    expect(browser.path).toBe('/organizations?next=%2Fsettings');
    expect(choice.body.match(/<div><a href="\/settings\?org=org_/g)).toHaveLength(2);
  });

  test('open an organization of others to no one', async () => {
    const victim = await createAccount(app);
    const [row] = await query<{ id: string }>(
      app.worker,
      sql`select org_id as id from members where user_id = ${victim.userId}`,
    );
    const browser = await signedIn((await createAccount(app)).email);
    const page = await browser.open(`/settings?org=${row?.id}`);
    expect(page.statusCode).toBe(404);
    expect(page.headers['content-type']).toContain('text/html');
  });
});

describe('forms', () => {
  const login = { email: 'a@people.example', password: PASSWORD, next: '/account' };

  test('are refused without the token of their page', async () => {
    const browser = createPageClient(app);
    for (const fields of [login, { ...login, csrf: '' }, { ...login, csrf: 'A'.repeat(43) }]) {
      const refused = await browser.post('/login', fields);
      expect(refused.statusCode).toBe(403);
      await browser.open('/login');
    }
  });

  test('are refused with the token of another browser', async () => {
    const attacker = createPageClient(app);
    const page = await attacker.open('/login');
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.body) ?? [];
    const victim = createPageClient(app);
    await victim.open('/login');
    expect((await victim.post('/login', { ...login, csrf })).statusCode).toBe(403);
    expect((await attacker.post('/login', { ...login, csrf })).statusCode).toBe(401);
  });

  test('are refused from another site, even with a token', async () => {
    const browser = createPageClient(app);
    const page = await browser.open('/login');
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.body) ?? [];
    const refused = await app.app.inject({
      method: 'POST',
      url: '/login',
      headers: {
        'sec-fetch-site': 'cross-site',
        'content-type': 'application/x-www-form-urlencoded',
        cookie: `browser=${browser.cookies.get('browser')}`,
      },
      payload: new URLSearchParams({ ...login, csrf }).toString(),
    });
    expect(refused.statusCode).toBe(403);
  });

  test.each([
    ['an unknown field', { ...login, admin: 'true' }],
    ['a missing field', { email: 'a@people.example' }],
    ['a field twice', { ...login, email: 'x' }],
    ['a field that is too long', { ...login, email: 'x'.repeat(10_000) }],
    ['a null character', { ...login, email: 'a\u0000@people.example' }],
  ])('with %s get a page, not an internal error', async (_case, fields) => {
    const browser = createPageClient(app);
    const page = await browser.open('/login');
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.body) ?? [];
    const twice = _case === 'a field twice' ? '&email=y' : '';
    const response = await app.app.inject({
      method: 'POST',
      url: '/login',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        cookie: `browser=${browser.cookies.get('browser')}`,
      },
      payload: `${new URLSearchParams({ ...fields, csrf })}${twice}`,
    });
    expect(response.statusCode).toBe(400);
    expect(response.headers['content-type']).toBe('text/html; charset=utf-8');
  });

  test('show what was entered as text', async () => {
    const browser = createPageClient(app);
    await browser.open('/signup');
    const page = await browser.submit('/signup', {
      name: '<script>alert(1)</script>',
      organization_name: '"><img src=x>',
      email: 'a@people.example',
      password: PASSWORD,
    });
    expect(page.statusCode).toBe(400);
    expect(page.body).not.toContain('<script>alert');
    expect(page.body).not.toContain('<img src=x>');
  });
});

test('every page allows no inline script, no frame and no cache', async () => {
  for (const path of ['/login', '/signup', '/forgot-password', '/verify-email?token=x', '/reset-password']) {
    const { headers, body } = await app.app.inject({ url: path });
    expect(headers['content-security-policy']).toMatch(/script-src 'self';.*frame-ancestors 'none'/);
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['referrer-policy']).toBe('no-referrer');
    expect(body).not.toMatch(/<script(?! (?:type="module" )?src)|\son\w+=|\sstyle=/);
  }
});

test('a page opened by a loopback address leads to the host name, which the cookie and passkeys belong to', async () => {
  const paths = ['/login?next=%2Fapprovals', '/account', '/organization?org=org_1'];
  for (const path of paths) {
    const response = await named.app.inject({ url: path, headers: { host: '127.0.0.1:3000' } });
    expect([response.statusCode, response.headers.location]).toEqual([307, `http://localhost:3000${path}`]);
    const other = await named.app.inject({ url: path, headers: { host: '192.0.2.7:3000' } });
    expect(other.headers.location ?? '').not.toContain('localhost');
  }
});

test('the API does not accept the cookie of a browser', async () => {
  const { token } = await createAccount(app);
  const response = await app.app.inject({ url: '/api/v1/user/me', headers: { cookie: `session=${token}` } });
  expect(response.statusCode).toBe(401);
});
