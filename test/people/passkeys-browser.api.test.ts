import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { findFreePort } from '../../dev/stack/ports.ts';
import { createAccount, newNetwork, signIn, type TestAccount } from '../support/accounts.ts';
import { addVirtualAuthenticator, findBrowserObstacle, launchBrowser } from '../support/browser.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';

const obstacle = findBrowserObstacle();
if (obstacle) process.stderr.write(`The test of passkeys in a browser is skipped: ${obstacle}.\n`);

const LIBRARY = readFileSync(
  new URL('../../node_modules/@simplewebauthn/browser/dist/bundle/index.umd.min.js', import.meta.url),
  'utf8',
);

/** What a page of the service does, with the library that its pages use. Runs in the browser. */
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
  let account: TestAccount;
  let origin: string;

  beforeAll(async () => {
    const port = await findFreePort();
    origin = `http://localhost:${port}`;
    app = await startTestApp({ config: { TRUST_PROXY: '127.0.0.1', PUBLIC_URL: origin } });
    await app.app.listen({ host: '127.0.0.1', port });
    account = await createAccount(app);
    browser = await launchBrowser();
    page = await browser.newPage();
    // A page of the origin; the requests it makes reach the API.
    await page.route(`${origin}/test-page`, (route) =>
      route.fulfill({ contentType: 'text/html', body: `<title>Test</title><script>${LIBRARY}</script>` }),
    );
    await page.goto(`${origin}/test-page`);
    await addVirtualAuthenticator(page);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });

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

  test('registers a passkey, signs in with it alone, and completes a sign-in with it', async () => {
    const options = await post('/auth/mfa/webauthn/register-options', {}, account.token);
    const created = await inBrowser('startRegistration', options.body);
    const registered = await post('/auth/mfa/webauthn/register', { response: created }, account.token);
    expect(registered).toMatchObject({ status: 201, body: { enrollment: { type: 'webauthn' } } });

    const request = await post('/auth/mfa/webauthn/auth-options', {});
    const asserted = await inBrowser('startAuthentication', request.body);
    const session = await post('/auth/login/passkey', { response: asserted });
    expect(session).toMatchObject({ status: 200, body: { user: { id: account.userId } } });

    const { mfa_token } = (await signIn(app, account.email)).json();
    const factor = await post('/auth/mfa/webauthn/auth-options', { mfa_token });
    const response = await inBrowser('startAuthentication', factor.body);
    const completed = await post('/auth/mfa/challenge', { mfa_token, method: 'webauthn', response });
    expect(completed).toMatchObject({ status: 200, body: { user: { id: account.userId } } });
  });

  test('does not register the same authenticator twice', async () => {
    const options = await post('/auth/mfa/webauthn/register-options', {}, account.token);
    await expect(inBrowser('startRegistration', options.body)).rejects.toThrow(/previously registered/);
  });
});
