import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import type { Browser, Page } from 'playwright-core';
import { findFreePort } from '../../dev/stack/ports.ts';
import { createAccountQuickly, PASSWORD, type QuickAccount } from '../support/accounts.ts';
import { findBrowserObstacle, launchBrowser } from '../support/browser.ts';
import { type ClientSite, fetchFrom, startClientSite } from '../support/client-site.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';

const obstacle = findBrowserObstacle();
if (obstacle) process.stderr.write(`The test of hosts in a browser is skipped: ${obstacle}.\n`);

/** What a host keeps of its sign-in, as the official client asks for it. */
class HostState implements OAuthClientProvider {
  readonly redirectUrl: string;
  readonly clientMetadataUrl: string | undefined;
  asked: URL | undefined;
  #client: ReturnType<OAuthClientProvider['clientInformation']>;
  #tokens: ReturnType<OAuthClientProvider['tokens']>;
  #verifier = '';
  #discovery: OAuthDiscoveryState | undefined;
  constructor(redirectUrl: string, clientMetadataUrl?: string) {
    this.redirectUrl = redirectUrl;
    this.clientMetadataUrl = clientMetadataUrl;
  }
  get clientMetadata() {
    return { client_name: 'Walking host', redirect_uris: [this.redirectUrl] };
  }
  state = () => 'state-of-the-host';
  clientInformation = () => this.#client;
  saveClientInformation = (client: Awaited<ReturnType<OAuthClientProvider['clientInformation']>>) => {
    this.#client = client;
  };
  tokens = () => this.#tokens;
  saveTokens = (tokens: Awaited<ReturnType<OAuthClientProvider['tokens']>>) => {
    this.#tokens = tokens;
  };
  invalidateCredentials = () => {
    this.#tokens = undefined;
  };
  redirectToAuthorization = (url: URL) => {
    this.asked = url;
  };
  saveCodeVerifier = (verifier: string) => {
    this.#verifier = verifier;
  };
  codeVerifier = () => this.#verifier;
  saveDiscoveryState = (discovery: OAuthDiscoveryState) => {
    this.#discovery = discovery;
  };
  discoveryState = () => this.#discovery;
}

(obstacle ? describe.skip : describe)('a host that runs on the person’s computer, in Chromium', () => {
  let app: TestApp;
  let site: ClientSite;
  let browser: Browser;
  let account: QuickAccount;
  let origin: string;
  let callback: string;
  let stopCallback: () => Promise<void>;
  const complaints: string[] = [];

  beforeAll(async () => {
    const port = await findFreePort();
    origin = `http://localhost:${port}`;
    site = await startClientSite();
    app = await startTestApp({
      config: { TRUST_PROXY: '127.0.0.1', PUBLIC_URL: origin },
      guardedFetch: fetchFrom(site),
    });
    await app.app.listen({ host: '127.0.0.1', port });
    account = await createAccountQuickly(app);
    browser = await launchBrowser();
    const server = createServer((_request, response) => response.end('You can close this window.'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    callback = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
    stopCallback = async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    };
  });
  afterAll(async () => {
    await browser?.close();
    await stopCallback?.();
    await app?.close();
    await site?.close();
  });

  async function openPage(): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) complaints.push(message.text());
    });
    return page;
  }

  const newTransport = (state: HostState) =>
    new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), { authProvider: state });
  const newClient = () => new Client({ name: 'walking-host', version: '1' });

  /** The host is refused, and finds out by itself where to send the person. */
  async function beginSignIn(state: HostState): Promise<StreamableHTTPClientTransport> {
    const transport = newTransport(state);
    await expect(newClient().connect(transport)).rejects.toThrow(UnauthorizedError);
    expect(state.asked?.origin).toBe(origin);
    return transport;
  }

  async function signIn(page: Page, url: string): Promise<void> {
    await page.goto(url);
    await page.getByLabel('Email address').fill(account.email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Connect a program' }).waitFor();
  }

  async function callWhoami(state: HostState): Promise<Record<string, unknown>> {
    const client = newClient();
    await client.connect(newTransport(state));
    const { structuredContent } = await client.callTool({ name: 'whoami', arguments: {} });
    await client.close();
    return structuredContent as Record<string, unknown>;
  }

  test('registers, is allowed less than it asks for, and works until the person ends it', async () => {
    const state = new HostState(callback);
    const transport = await beginSignIn(state);
    const page = await openPage();
    await signIn(page, String(state.asked));
    expect(await page.locator('main').textContent()).toContain('cannot tell who operates it');
    await page.getByLabel('messages:send').uncheck();
    await page.getByLabel('How long').selectOption('7');
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`${callback}?**`);
    await transport.finishAuth(new URL(page.url()).searchParams);
    const { kind, id, permissions } = await callWhoami(state);
    expect(kind).toBe('connection');
    expect(permissions).toContain('messages:read');
    expect(permissions).not.toContain('messages:send');

    const ended = await app.call(`/connections/${id}`, { method: 'DELETE', token: account.token });
    expect(ended.statusCode).toBe(204);
    await expect(callWhoami(state)).rejects.toThrow();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test('with a metadata document needs no registration, and the page names its site', async () => {
    const path = '/walking-host.json';
    const clientId = `${site.origin}${path}`;
    const redirectUris = ['http://127.0.0.1/callback'];
    const document = { client_id: clientId, client_name: 'Walking host', redirect_uris: redirectUris };
    site.documents.set(path, { body: JSON.stringify(document) });
    const state = new HostState(callback, clientId);
    const transport = await beginSignIn(state);
    expect(state.asked?.searchParams.get('client_id')).toBe(clientId);
    const page = await openPage();
    await signIn(page, String(state.asked));
    expect(await page.locator('main').textContent()).toContain(`operated by host.example:${site.port}`);
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`${callback}?**`);
    await transport.finishAuth(new URL(page.url()).searchParams);
    expect(await callWhoami(state)).toMatchObject({ kind: 'connection', user_id: account.userId });
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test('learns that the person cancelled', async () => {
    const state = new HostState(callback);
    await beginSignIn(state);
    const page = await openPage();
    await signIn(page, String(state.asked));
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.waitForURL(`${callback}?**`);
    expect(new URL(page.url()).searchParams.get('error')).toBe('access_denied');
    await page.context().close();
  });
});
