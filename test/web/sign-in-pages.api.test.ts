import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createAccountQuickly, PASSWORD, type QuickAccount } from '../support/accounts.ts';
import { OIDC_CLIENT, startForgingProvider } from '../support/identity-providers.ts';
import { createPageClient, type PageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createSoftwareAuthenticator } from '../support/software-authenticator.ts';
import { useResource } from '../support/use-resource.ts';

const provider = useResource(startForgingProvider, ({ close }) => close());
const app = useTestApp(() => ({
  config: {
    TRUST_PROXY: '127.0.0.1',
    OAUTH_OIDC_PROVIDERS: JSON.stringify([
      {
        id: 'forge',
        name: 'Forge',
        issuer: provider.issuer,
        client_id: OIDC_CLIENT.clientId,
        client_secret: OIDC_CLIENT.clientSecret,
      },
    ]),
  },
}));

async function signedIn({ email }: QuickAccount): Promise<PageClient> {
  const browser = createPageClient(app);
  await browser.open('/login');
  await browser.submit('/login', { email, password: PASSWORD });
  return browser;
}

/** What the script of the pages does: asks for options, and submits the answer with the form. */
async function requestOptions(browser: PageClient, html: string, action: string) {
  const [, form = ''] =
    new RegExp(`<form[^>]*data-options="${action}"[^>]*>(.*?)</form>`, 's').exec(html) ?? [];
  const [, csrf = ''] = /name="csrf" value="([^"]*)"/.exec(form) ?? [];
  const response = await app.app.inject({
    method: 'POST',
    url: action,
    headers: {
      'content-type': 'application/json',
      'x-csrf-token': csrf,
      cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
    },
    payload: '{}',
  });
  return { csrf, options: response.json(), status: response.statusCode };
}

async function enroll(browser: PageClient) {
  const authenticator = createSoftwareAuthenticator();
  const { body } = await browser.open('/account');
  const { csrf, options } = await requestOptions(browser, body, '/account/passkeys/options');
  const response = JSON.stringify(authenticator.register(options));
  const registered = await browser.post('/account/passkeys', { csrf, response, name: 'Key' });
  return { authenticator, registered };
}

describe('passkeys on pages', () => {
  test('are registered, and sign in with the next page', async () => {
    const { authenticator, registered } = await enroll(await signedIn(await createAccountQuickly(app)));
    expect(registered.body).toContain('Your recovery codes');
    const browser = createPageClient(app);
    const { body } = await browser.open('/login?next=/settings');
    const { csrf, options } = await requestOptions(browser, body, '/login/passkey/options');
    const response = JSON.stringify(authenticator.authenticate(options));
    const signed = await browser.post('/login/passkey', { csrf, response, next: '/settings' });
    expect([signed.statusCode, signed.headers.location]).toEqual([303, '/settings']);
    const elsewhere = JSON.stringify(authenticator.authenticate(options));
    const replayed = await browser.post('/login/passkey', {
      csrf,
      response: elsewhere,
      next: '//evil.example',
    });
    expect(replayed.statusCode).not.toBe(303);
  });

  test('complete a sign-in that waits for its second factor', async () => {
    const account = await createAccountQuickly(app);
    const { authenticator } = await enroll(await signedIn(account));
    const browser = createPageClient(app);
    await browser.open('/login');
    const { body } = await browser.submit('/login', { email: account.email, password: PASSWORD });
    expect(browser.path).toBe('/login/mfa?next=%2Foverview');
    const { csrf, options } = await requestOptions(browser, body, '/login/mfa/passkey/options');
    const response = JSON.stringify(authenticator.authenticate(options));
    const fields = { csrf, method: 'webauthn', next: '/account' };
    const wrong = await browser.post('/login/mfa', { ...fields, response: '{}' });
    expect([wrong.statusCode, wrong.body.includes('role="alert"')]).toEqual([400, true]);
    const completed = await browser.post('/login/mfa', { ...fields, response });
    expect([completed.statusCode, completed.headers.location]).toEqual([303, '/account']);
  });

  test.each(['', '{', 'null', '[]', '{"id":7}', '{"response":{}}', '{"response":null,"id":"a","rawId":"a"}'])(
    'refuse %j with a page',
    async (response) => {
      const browser = createPageClient(app);
      const { body } = await browser.open('/login');
      const { csrf } = await requestOptions(browser, body, '/login/passkey/options');
      const refused = await browser.post('/login/passkey', { csrf, response, next: '/account' });
      expect([refused.statusCode, refused.body.includes('role="alert"')]).toEqual([400, true]);
      const account = await signedIn(await createAccountQuickly(app));
      const page = await account.open('/account');
      const { csrf: own } = await requestOptions(account, page.body, '/account/passkeys/options');
      expect((await account.post('/account/passkeys', { csrf: own, response })).statusCode).toBe(400);
    },
  );

  test('need the token of the page', async () => {
    for (const path of [
      '/login/passkey/options',
      '/login/mfa/passkey/options',
      '/account/passkeys/options',
    ]) {
      const forged = await app.app.inject({
        method: 'POST',
        url: path,
        headers: { 'content-type': 'application/json', 'x-csrf-token': 'x', cookie: 'browser=x' },
        payload: '{}',
      });
      expect([303, 403]).toContain(forged.statusCode);
    }
  });

  test('load only scripts of this service', async () => {
    const { body, headers } = await createPageClient(app).open('/login');
    const sources = [...body.matchAll(/<script src="([^"]*)" defer><\/script>/g)].map(([, source]) => source);
    expect(sources).toEqual(['/assets/simplewebauthn-browser.js', '/assets/passkeys.js']);
    expect(body.match(/<script(?! type="module" src="\/assets\/console\.js")/g)).toHaveLength(2);
    expect(headers['content-security-policy']).toContain("script-src 'self'");
    for (const source of sources) {
      const script = await app.app.inject({ method: 'GET', url: source ?? '' });
      expect([script.statusCode, script.headers['content-type']]).toEqual([
        200,
        'text/javascript; charset=utf-8',
      ]);
    }
  });
});

describe('providers on pages', () => {
  test('have a button on the login page that leads to the provider', async () => {
    const { body } = await createPageClient(app).open('/login?next=/settings');
    const [, link = ''] = /<a class="button plain" href="([^"]*)">Continue with Forge</.exec(body) ?? [];
    expect(link).toBe('/api/v1/auth/oauth/forge?redirect_to=%2Fsettings');
    const started = await app.app.inject({ method: 'GET', url: link, headers: { accept: 'text/html' } });
    expect(started.headers.location).toContain(`${provider.issuer}/authorize?`);
    const target = async (path: string) => {
      const page = await createPageClient(app).open(path);
      return /oauth\/forge\?redirect_to=([^"]*)">Continue with Forge</.exec(page.body)?.[1];
    };
    expect(await target('/signup')).toBe('%2Foverview');
    expect(await target('/signup?next=/settings')).toBe('%2Fsettings');
    expect(await target('/signup?next=//evil.example')).toBe('%2Foverview');
  });

  test('stand in one group with single sign-on, which is offered once, and opens without an address', async () => {
    const browser = createPageClient(app);
    const { body } = await browser.open('/login');
    expect(body.match(/single sign-on/gi)).toHaveLength(1);
    const [group = ''] = /<section class="other-ways".*?<\/section>/s.exec(body) ?? [];
    const buttons = [...group.matchAll(/<(?:button|a class="button)[^>]*>/g)].map(([tag]) => tag);
    expect(buttons).toHaveLength(3);
    for (const button of buttons) expect(button).toContain('plain');
    const [, csrf = ''] = /name="csrf" value="([^"]*)"/.exec(body) ?? [];
    const opened = await browser.post('/login/sso', { csrf, email: '', password: '', next: '/settings' });
    expect([opened.statusCode, opened.body.includes('role="alert"')]).toEqual([200, false]);
  });

  test('are linked and unlinked on the account page', async () => {
    const browser = await signedIn(await createAccountQuickly(app));
    await browser.open('/account');
    const left = await browser.submit('/account/providers/link');
    const [, url = ''] = /http-equiv="refresh" content="0; url=([^"]*)"/.exec(left.body) ?? [];
    const sent = new URL(url.replaceAll('&amp;', '&'));
    expect(sent.origin).toBe(provider.issuer);
    const seconds = Math.floor(Date.now() / 1000);
    provider.state.token = {
      claims: {
        iss: provider.issuer,
        aud: OIDC_CLIENT.clientId,
        sub: randomBytes(8).toString('hex'),
        exp: seconds + 300,
        iat: seconds,
        nonce: sent.searchParams.get('nonce'),
        email: 'grace@elsewhere.example',
      },
    };
    const query = new URLSearchParams({ code: 'a-code', state: sent.searchParams.get('state') ?? '' });
    const linked = await browser.open(`/api/v1/auth/oauth/forge/callback?${query}`);
    expect(browser.path).toBe('/account?notice=provider-linked');
    expect(linked.body).toContain('grace@elsewhere.example');
    const unlinked = await browser.submit('/account/providers/unlink');
    expect(unlinked.body).toContain('The provider is unlinked.');
    expect(unlinked.body).not.toContain('grace@elsewhere.example');
  });

  test('ask for a new sign-in if the last one is too old', async () => {
    const account = await createAccountQuickly(app);
    const browser = await signedIn(account);
    await browser.open('/account');
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '11 minutes' where user_id = ${account.userId}`,
    );
    await browser.submit('/account/providers/link');
    expect(browser.path).toBe('/login?next=%2Faccount&notice=sign-in-again');
  });
});
