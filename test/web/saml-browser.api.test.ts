import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { findFreePort } from '../../dev/stack/ports.ts';
import { findBrowserObstacle, launchBrowser } from '../support/browser.ts';
import {
  createSamlKey,
  encodeSaml,
  idpMetadata,
  responseXml,
  type SamlKey,
  samlAnswer,
  signXml,
} from '../support/saml-idp.ts';
import { activateUntested, createSsoOrganization, SSO_TEST_CONFIG } from '../support/sso.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';

const obstacle = findBrowserObstacle();
if (obstacle) process.stderr.write(`The test of SAML in a browser is skipped: ${obstacle}.\n`);

/** The identity provider is another site than the service, so its form is a cross-site POST. */
(obstacle ? describe.skip : describe)('SAML in Chromium', () => {
  let app: TestApp;
  let origin: string;
  let browser: Browser;
  let provider: Server;
  let key: SamlKey;
  let organizationId: string;
  let acsUrl: string;
  let email: string;
  let audience: string;
  const complaints: string[] = [];

  beforeAll(async () => {
    const port = await findFreePort();
    origin = `http://localhost:${port}`;
    app = await startTestApp({ config: { ...SSO_TEST_CONFIG, PUBLIC_URL: origin } });
    await app.app.listen({ host: '127.0.0.1', port });
    key = await createSamlKey();
    provider = createServer((request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end(answerPage(request.url ?? '/'));
    }).listen(0, '127.0.0.1');
    await once(provider, 'listening');
    browser = await launchBrowser();

    const organization = await createSsoOrganization(app);
    ({ organizationId } = organization);
    email = `grace@${organization.domain}`;
    const created = await app.call('/org/sso', {
      method: 'POST',
      token: organization.token,
      body: {
        type: 'saml',
        name: 'Staff accounts',
        idp_metadata_xml: idpMetadata([key], { ssoUrl: `${providerOrigin()}/sso` }),
        domains: [organization.domain],
        default_role: 'viewer',
        allow_idp_initiated: true,
      },
    });
    ({ acs_url: acsUrl, sp_entity_id: audience } = created.json());
    await activateUntested(app, organization.token, created.json().id);
  });
  afterAll(async () => {
    await browser?.close();
    provider?.closeAllConnections();
    provider?.close();
    await app?.close();
  });

  const providerOrigin = () => `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;

  /** The provider knows the person, and sends the browser back with a signed response. */
  function answerPage(url: string): string {
    const query = new URL(url, 'http://127.0.0.1').searchParams;
    const packed = query.get('SAMLRequest');
    const request = packed === null ? '' : inflateRawSync(Buffer.from(packed, 'base64')).toString();
    const [, inResponseTo] = / ID="([^"]+)"/.exec(request) ?? [];
    const answer = samlAnswer({ acsUrl, audience, email, inResponseTo });
    const xml = signXml(responseXml(answer), 'Assertion', key);
    const relayState = query.get('RelayState');
    return `<form method="post" action="${acsUrl}">
<input type="hidden" name="SAMLResponse" value="${encodeSaml(xml)}">
${relayState === null ? '' : `<input type="hidden" name="RelayState" value="${relayState}">`}
<button>Continue</button></form>`;
  }

  async function newPage(): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) complaints.push(message.text());
    });
    return page;
  }

  test('signs in a person who begins here, across sites', async () => {
    const page = await newPage();
    await page.goto(`${origin}/login/sso?next=/settings`);
    await page.getByLabel('Organization').fill(organizationId);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL(`${providerOrigin()}/**`);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL(`${origin}/settings`);
    await page.getByRole('heading', { name: 'Settings' }).waitFor();
    const cookies = await page.context().cookies(origin);
    expect(cookies.find(({ name }) => name === 'session')).toMatchObject({ httpOnly: true, sameSite: 'Lax' });
    expect(complaints).toEqual([]);
  });

  test('asks a person who begins at the identity provider, and signs in after the answer', async () => {
    const page = await newPage();
    await page.goto(`${providerOrigin()}/start`);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL(`${origin}/**`);
    expect((await page.context().cookies(origin)).map(({ name }) => name)).not.toContain('session');
    await page.getByRole('button').click();
    await page.waitForURL(`${origin}/overview`);
    await page.getByText(email).first().waitFor();
    expect(complaints).toEqual([]);
  });
});
