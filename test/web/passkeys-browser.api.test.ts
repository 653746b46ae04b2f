import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { findFreePort } from '../../dev/stack/ports.ts';
import {
  createAccountQuickly,
  newNetwork,
  PASSWORD,
  type QuickAccount,
  signIn,
} from '../support/accounts.ts';
import { addVirtualAuthenticator, findBrowserObstacle, launchBrowser } from '../support/browser.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';

const obstacle = findBrowserObstacle();
if (obstacle) process.stderr.write(`The test of passkeys in a browser is skipped: ${obstacle}.\n`);

/** The library that the pages load. */
interface PageScript {
  SimpleWebAuthnBrowser: Record<
    'startRegistration' | 'startAuthentication',
    (call: { optionsJSON: unknown }) => Promise<unknown>
  >;
}

(obstacle ? describe.skip : describe)('Chromium with a virtual authenticator', () => {
  let app: TestApp;
  let browser: Browser;
  let page: Page;
  let account: QuickAccount;
  let origin: string;
  const complaints: string[] = [];

  beforeAll(async () => {
    const port = await findFreePort();
    origin = `http://localhost:${port}`;
    app = await startTestApp({ config: { TRUST_PROXY: '127.0.0.1', PUBLIC_URL: origin } });
    await app.app.listen({ host: '127.0.0.1', port });
    account = await createAccountQuickly(app);
    browser = await launchBrowser();
    page = await browser.newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) complaints.push(message.text());
    });
    await addVirtualAuthenticator(page);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });

  async function signInByPassword(): Promise<void> {
    await page.goto(`${origin}/login`);
    await page.getByLabel('Email address').fill(account.email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  }

  test('adds a passkey on the account page, and signs in with it from the browser’s suggestions', async () => {
    await signInByPassword();
    await page.waitForURL(`${origin}/overview`);
    await page.goto(`${origin}/account`);
    await page.getByLabel('Name of the new passkey').fill('This laptop');
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor();
    const codes = (await page.locator('.codes-list').textContent()) ?? '';
    expect(codes.trim().split('\n')).toHaveLength(10);
    await page.getByRole('link', { name: 'I have stored them' }).click();
    await page.getByText('This laptop').first().waitFor();

    await page.context().clearCookies();
    // The virtual authenticator accepts the suggestion in the field for the address.
    await page.goto(`${origin}/login?next=/settings`);
    await page.waitForURL(`${origin}/settings`);
    expect(complaints).toEqual([]);
  });

  test('signs in by the button, in a browser without suggestions', async () => {
    await page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = async () => false');
    await page.getByRole('button', { name: /^Account/ }).click();
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.waitForURL(`${origin}/login?notice=signed-out`);
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await page.waitForURL(`${origin}/overview`);
  });

  test('completes a sign-in by password with it', async () => {
    await page.context().clearCookies();
    await signInByPassword();
    await page.getByRole('heading', { name: 'Second factor' }).waitFor();
    await page.getByRole('button', { name: 'Use my passkey' }).click();
    await page.waitForURL(`${origin}/overview`);
    expect(await page.getByText(account.email).count()).toBeGreaterThan(0);
  });

  test('does not register the same authenticator twice', async () => {
    await page.goto(`${origin}/account`);
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByText('This device is registered already.').waitFor();
  });

  test('can be used by other clients of the API with the same calls', async () => {
    const post = async (path: string, body: unknown, token?: string) => {
      const response = await app.call(path, {
        method: 'POST',
        body,
        headers: newNetwork(),
        ...(token === undefined ? {} : { token }),
      });
      return { status: response.statusCode, body: response.json() };
    };
    const inBrowser = (ceremony: keyof PageScript['SimpleWebAuthnBrowser'], optionsJSON: unknown) =>
      page.evaluate(
        ([name, options]) =>
          (globalThis as unknown as PageScript).SimpleWebAuthnBrowser[name]({ optionsJSON: options }),
        [ceremony, optionsJSON] as const,
      );
    const other = await createAccountQuickly(app);
    const options = await post('/auth/mfa/webauthn/register-options', {}, other.token);
    const created = await inBrowser('startRegistration', options.body);
    const registered = await post('/auth/mfa/webauthn/register', { response: created }, other.token);
    expect(registered).toMatchObject({ status: 201, body: { enrollment: { type: 'webauthn' } } });
    const { mfa_token } = (await signIn(app, other.email)).json();
    const factor = await post('/auth/mfa/webauthn/auth-options', { mfa_token });
    const response = await inBrowser('startAuthentication', factor.body);
    const completed = await post('/auth/mfa/challenge', { mfa_token, method: 'webauthn', response });
    expect(completed).toMatchObject({ status: 200, body: { user: { id: other.userId } } });
  });
});
