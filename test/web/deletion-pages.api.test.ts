import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { readAccountMail } from '../support/account-mail.ts';
import { createAccountQuickly, PASSWORD } from '../support/accounts.ts';
import { createPageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

async function signedIn(email: string) {
  const browser = createPageClient(app);
  await browser.open('/login');
  await browser.submit('/login', { email, password: PASSWORD });
  return browser;
}

test('an account is deleted on its page and recovered by the mailed link', async () => {
  const { email } = await createAccountQuickly(app);
  const browser = await signedIn(email);
  await browser.open('/account');
  const wrong = await browser.submit('/account/delete', { current_password: 'a wrong password 1' });
  expect(wrong.statusCode).toBe(401);
  await browser.submit('/account/delete', { current_password: PASSWORD });
  expect(browser.path).toBe('/login?notice=account-deleted');
  expect(browser.cookies.has('session')).toBe(false);

  const refused = await browser.submit('/login', { email, password: PASSWORD });
  expect(refused.statusCode).toBe(403);
  expect(refused.body).toContain('href="/recover"');

  const token = (await readAccountMail(app, email)).at(-1)?.token ?? '';
  // Scanners open links, too.
  for (let count = 0; count < 3; count += 1)
    expect((await browser.open(`/recover?token=${token}`)).statusCode).toBe(200);
  const recovered = await browser.submit('/recover');
  expect(browser.path).toBe('/account?notice=account-recovered');
  expect(recovered.body).toContain('Your account is recovered.');
});

test('an account is recovered by address and password, and not by a wrong one', async () => {
  const { email } = await createAccountQuickly(app);
  const browser = await signedIn(email);
  await browser.open('/account');
  await browser.submit('/account/delete', {});
  expect(browser.path).toBe('/login?notice=account-deleted');
  await browser.open('/recover');
  const wrong = await browser.submit('/recover', { email, password: 'a wrong password 1' });
  expect(wrong.statusCode).toBe(401);
  expect(wrong.body).toContain(email);
  expect(wrong.body).not.toContain('a wrong password 1');
  await browser.submit('/recover', { email, password: PASSWORD });
  expect(browser.path).toBe('/account?notice=account-recovered');
});

test('a link that was used leads to the form for address and password', async () => {
  const browser = createPageClient(app);
  await browser.open('/recover?token=used');
  const page = await browser.submit('/recover');
  expect(page.statusCode).toBe(401);
  expect(page.body).toContain('name="password"');
});

test('an organization is closed with its name and recovered on the account page', async () => {
  const { email, organizationId } = await createAccountQuickly(app);
  const browser = await signedIn(email);
  await browser.open('/settings/closing');
  const action = '/settings/closing';
  const wrong = await browser.submit(action, { name: 'Another' });
  expect(wrong.statusCode).toBe(400);
  expect(wrong.body).toContain('must be the name of the organization');
  const closed = await browser.submit(action, { name: 'Test' });
  expect(browser.path).toBe('/account?notice=organization-closed');
  expect(closed.body).toContain('Closed organizations');
  await browser.submit('/account/organizations/recover', {});
  expect(browser.path).toBe(`/settings?org=${organizationId}&notice=organization-recovered`);
});

test('an organization is closed and recovered only after a fresh sign-in, which the page asks for', async () => {
  const { email, userId } = await createAccountQuickly(app);
  const browser = await signedIn(email);
  await browser.open('/settings/closing');
  await query(
    app.worker,
    sql`update sessions set authenticated_at = now() - interval '1 hour' where user_id = ${userId}`,
  );
  await browser.submit('/settings/closing', { name: 'Test' });
  expect(browser.path).toContain('notice=sign-in-again');
});
