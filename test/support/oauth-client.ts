import { createHash, randomBytes } from 'node:crypto';
import type { LightMyRequestResponse } from 'fastify';
import { createAccountQuickly, newNetwork, PASSWORD, type QuickAccount } from './accounts.ts';
import { createPageClient, type Fields, type PageClient } from './page-client.ts';
import type { TestApp } from './test-app.ts';

export const REDIRECT_URI = 'https://host.example/callback';

/** A client of the authorization server, as MCP hosts have one. */
export interface OauthClient {
  readonly clientId: string;
  /** The path to which the client sends the person's browser. */
  authorizePath(parameters?: Record<string, string>): string;
  /** Exchanges a code. */
  exchange(code: string, parameters?: Record<string, string>): Promise<LightMyRequestResponse>;
  refresh(refreshToken: string, parameters?: Record<string, string>): Promise<LightMyRequestResponse>;
  post(path: string, parameters: Record<string, string>): Promise<LightMyRequestResponse>;
}

export function register(
  app: TestApp,
  metadata: object = {},
  headers: Record<string, string> = newNetwork(),
) {
  return app.app.inject({
    method: 'POST',
    url: '/oauth/register',
    headers,
    payload: { client_name: 'Test host', redirect_uris: [REDIRECT_URI], ...metadata },
  });
}

export async function registerClient(app: TestApp, metadata: object = {}): Promise<OauthClient> {
  const registered = await register(app, metadata);
  if (registered.statusCode !== 201) throw new Error(registered.body);
  return createOauthClient(app, registered.json().client_id);
}

export function createOauthClient(app: TestApp, clientId: string): OauthClient {
  const verifier = randomBytes(32).toString('base64url');
  const network = newNetwork();
  const post = (path: string, parameters: Record<string, string>) =>
    app.app.inject({
      method: 'POST',
      url: path,
      headers: { ...network, 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams({ client_id: clientId, ...parameters }).toString(),
    });
  return {
    clientId,
    authorizePath: (parameters = {}) =>
      `/oauth/authorize?${new URLSearchParams({
        response_type: 'code',
        client_id: clientId,
        redirect_uri: REDIRECT_URI,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
        state: 'state-of-the-client',
        ...parameters,
      })}`,
    exchange: (code, parameters = {}) =>
      post('/oauth/token', {
        grant_type: 'authorization_code',
        code,
        redirect_uri: REDIRECT_URI,
        code_verifier: verifier,
        ...parameters,
      }),
    refresh: (refreshToken, parameters = {}) =>
      post('/oauth/token', { grant_type: 'refresh_token', refresh_token: refreshToken, ...parameters }),
    post,
  };
}

/** A browser whose person has just signed in. */
export async function signedInBrowser(app: TestApp, email: string): Promise<PageClient> {
  const browser = createPageClient(app);
  await browser.open('/login');
  await browser.submit('/login', { email, password: PASSWORD });
  return browser;
}

/** Opens the page of consent. `fields` are those of its form with everything allowed. */
export async function openConsent(browser: PageClient, path: string) {
  const page = await browser.open(path);
  const [, action = ''] = /<form method="post" action="(\/connect\/[^"]+)"/.exec(page.body) ?? [];
  if (action === '') throw new Error(`${page.statusCode} ${browser.path}\n${page.body}`);
  const names = [...page.body.matchAll(/name="permissions" value="([^"]+)"/g)].map(([, name = '']) => name);
  return { page, action, names, fields: { days: '30', permissions: names } };
}

/** Opens the page of consent, and submits it. Returns where the browser is sent in the end. */
export async function consent(browser: PageClient, path: string, decision: Fields = {}): Promise<URL> {
  const { action, fields } = await openConsent(browser, path);
  const answer = await browser.submit(action, { ...fields, decision: 'allow', ...decision });
  const [, next = ''] = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(answer.body) ?? [];
  if (next === '') throw new Error(`${answer.statusCode}\n${answer.body}`);
  await browser.open(next);
  return new URL(browser.path);
}

export interface TestConnection {
  account: QuickAccount;
  client: OauthClient;
  connectionId: string;
  code: string;
  tokens: { access_token: string; refresh_token: string; scope: string };
}

/** A person who has connected a client. */
export async function connect(
  app: TestApp,
  decision: Fields = {},
  account?: QuickAccount,
): Promise<TestConnection> {
  const person = account ?? (await createAccountQuickly(app));
  const client = await registerClient(app);
  const browser = await signedInBrowser(app, person.email);
  const answered = await consent(browser, client.authorizePath(), decision);
  const code = answered.searchParams.get('code') ?? '';
  const exchanged = await client.exchange(code);
  if (exchanged.statusCode !== 200) throw new Error(exchanged.body);
  const [newest] = (await app.call('/connections', { token: person.token })).json().data;
  return { account: person, client, connectionId: newest.id, code, tokens: exchanged.json() };
}
