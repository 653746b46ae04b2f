import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { readAccountMail } from '../support/account-mail.ts';
import { newAddress, PASSWORD } from '../support/accounts.ts';
import { createPageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1', PUBLIC_URL: 'https://mail.example' } });

const COOKIE = '__Host-first-key';
const SESSION = '__Host-session';

const keyOf = (html: string) => /<code class="secret" id="api-key">([^<]*)</.exec(html)?.[1];

/** Signs up in a browser and presses the button of the mailed link. `answer` is what the browser gets, before it goes on. */
async function signUp() {
  const browser = createPageClient(app);
  const email = newAddress();
  await browser.open('/signup');
  const fields = { name: 'Ada', organization_name: 'Engines', email, password: PASSWORD };
  await browser.submit('/signup', fields);
  const token = (await readAccountMail(app, email)).at(-1)?.token ?? '';
  const { body } = await browser.open(`/verify-email?token=${token}`);
  const [, csrf = ''] = /name="csrf" value="([^"]*)"/.exec(body) ?? [];
  const answer = await browser.post('/verify-email', { csrf, token });
  return { browser, email, answer, cookie: browser.cookies.get(COOKIE) ?? '' };
}

describe('the first API key of a sign-up', () => {
  test('is shown on Overview, once', async () => {
    const { browser, answer } = await signUp();
    expect([answer.statusCode, answer.headers.location]).toEqual([303, '/overview']);
    expect(answer.cookies.find(({ name }) => name === COOKIE)).toMatchObject({
      httpOnly: true,
      secure: true,
      sameSite: 'Lax',
      path: '/',
      maxAge: 300,
    });
    const overview = await browser.open('/overview');
    const key = keyOf(overview.body) ?? '';
    expect(key).toMatch(/^ask_live_/);
    expect(JSON.stringify(answer.headers)).not.toContain(key);
    expect(overview.body).toContain('Your first API key');
    expect(overview.body).toContain('First steps');
    expect(overview.body).not.toContain('create one</a> if you have none');
    expect(overview.headers['cache-control']).toBe('no-store');
    expect((await app.call('/inboxes', { token: key })).statusCode).toBe(200);

    expect(browser.cookies.has(COOKIE)).toBe(false);
    const again = await browser.open('/overview');
    expect(again.statusCode).toBe(200);
    expect(again.body).not.toContain('ask_live_');
    expect(again.body).toContain('<a href="/keys/new">create one</a> if you have none');
  });

  test.each([
    ['forged', 'Zm9yZ2Vk'],
    ['empty', ''],
    ['no base64', '~%00~'],
    ['long', 'A'.repeat(3_000)],
  ])('is not shown by a cookie that is %s, which is cleared', async (_case, value) => {
    const { browser } = await signUp();
    browser.cookies.set(COOKIE, value);
    const overview = await browser.open('/overview');
    expect(overview.statusCode).toBe(200);
    expect(keyOf(overview.body)).toBeUndefined();
    expect(browser.cookies.has(COOKIE)).toBe(false);
  });

  test('is not shown by an altered cookie', async () => {
    const { browser, cookie } = await signUp();
    const bytes = Buffer.from(cookie, 'base64url');
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
    browser.cookies.set(COOKIE, bytes.toString('base64url'));
    expect(keyOf((await browser.open('/overview')).body)).toBeUndefined();
    expect(browser.cookies.has(COOKIE)).toBe(false);
  });

  test('is shown neither to another person nor in another session, whose cookie is cleared', async () => {
    const [ada, eve] = [await signUp(), await signUp()];
    eve.browser.cookies.set(COOKIE, ada.cookie);
    const overview = await eve.browser.open('/overview');
    expect([overview.statusCode, keyOf(overview.body)]).toEqual([200, undefined]);
    expect(eve.browser.cookies.has(COOKIE)).toBe(false);

    const other = createPageClient(app);
    await other.open('/login');
    other.cookies.set(COOKIE, ada.cookie);
    const signedIn = await other.submit('/login', { email: ada.email, password: PASSWORD });
    expect([other.path, signedIn.statusCode, keyOf(signedIn.body)]).toEqual(['/overview', 200, undefined]);
    expect(other.cookies.has(COOKIE)).toBe(false);

    expect(keyOf((await ada.browser.open('/overview')).body)).toMatch(/^ask_live_/);
  });

  test('is not shown after five minutes, even if the browser keeps the cookie', async () => {
    const { browser, email, cookie } = await signUp();
    const age = (seconds: number) =>
      query(
        app.worker,
        sql`update sessions set authenticated_at = now() - make_interval(secs => ${seconds})
          where user_id = (select id from users where email = ${email})`,
      );
    await age(310);
    expect(keyOf((await browser.open('/overview')).body)).toBeUndefined();
    expect(browser.cookies.has(COOKIE)).toBe(false);
    await age(200);
    browser.cookies.set(COOKIE, cookie);
    expect(keyOf((await browser.open('/overview')).body)).toMatch(/^ask_live_/);
  });

  test('waits in its cookie while the browser is signed out, and on other pages', async () => {
    const { browser, cookie } = await signUp();
    const session = browser.cookies.get(SESSION) ?? '';
    browser.cookies.delete(SESSION);
    await browser.open('/overview');
    expect(browser.path).toMatch(/^\/login/);
    browser.cookies.set(SESSION, session);
    await browser.open('/account');
    expect(browser.cookies.get(COOKIE)).toBe(cookie);
    expect(keyOf((await browser.open('/overview')).body)).toMatch(/^ask_live_/);
  });
});

test('the used link, to which the back button leads, goes on to Overview', async () => {
  const { browser } = await signUp();
  const back = await browser.open('/verify-email?token=used');
  expect(back.body).toContain('You are signed in. The link works once');
  expect((await createPageClient(app).open('/verify-email?token=used')).body).not.toContain('signed in');
});
