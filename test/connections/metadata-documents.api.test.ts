import { describe, expect, test } from '@jest/globals';
import { createAccountQuickly } from '../support/accounts.ts';
import { fetchFrom, INTERNAL, type Published, startClientSite } from '../support/client-site.ts';
import { eventually } from '../support/eventually.ts';
import {
  consent,
  createOauthClient,
  openConsent,
  REDIRECT_URI,
  signedInBrowser,
} from '../support/oauth-client.ts';
import { createPageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { useResource } from '../support/use-resource.ts';

const site = useResource(startClientSite, (started) => started.close());

const app = useTestApp(() => ({
  config: { TRUST_PROXY: '127.0.0.1' },
  guardedFetch: fetchFrom(site),
}));

let number = 0;
/** Publishes a document, and returns its URL. */
function publish(change: object = {}, answer: Partial<Published> = {}): string {
  number += 1;
  const path = `/clients/${number}.json`;
  const clientId = `${site.origin}${path}`;
  const document = { client_id: clientId, client_name: 'Host', redirect_uris: [REDIRECT_URI], ...change };
  site.documents.set(path, { body: JSON.stringify(document), ...answer });
  return clientId;
}

const authorize = (clientId: string, parameters = {}) =>
  createPageClient(app).open(createOauthClient(app, clientId).authorizePath(parameters));

describe('a client with a metadata document', () => {
  test('needs no registration; the page names its site, and tokens work and refresh', async () => {
    const account = await createAccountQuickly(app);
    const clientId = publish({ token_endpoint_auth_method: 'none', grant_types: ['authorization_code'] });
    const client = createOauthClient(app, clientId);
    const browser = await signedInBrowser(app, account.email);
    const { page } = await openConsent(browser, client.authorizePath());
    expect(page.body).toContain(`operated by <strong>host.example:${site.port}</strong>`);
    const answered = await consent(browser, client.authorizePath());
    const exchanged = await client.exchange(answered.searchParams.get('code') ?? '');
    expect(exchanged.statusCode).toBe(200);
    expect((await client.refresh(exchanged.json().refresh_token)).statusCode).toBe(200);
    const { data } = (await app.call('/connections', { token: account.token })).json();
    expect(data[0]).toMatchObject({ client_id: clientId, client_name: 'Host' });
    // Read once within five minutes.
    expect(site.requests.filter((path) => clientId.endsWith(path))).toHaveLength(1);
  });

  test('on a computer may use any port of a loopback address', async () => {
    const account = await createAccountQuickly(app);
    const client = createOauthClient(app, publish({ redirect_uris: ['http://localhost/callback'] }));
    const browser = await signedInBrowser(app, account.email);
    const redirectUri = 'http://localhost:43123/callback';
    const answered = await consent(browser, client.authorizePath({ redirect_uri: redirectUri }));
    expect(answered.origin).toBe('http://localhost:43123');
  });

  test('gets codes at the addresses of its document alone', async () => {
    const refused = await authorize(publish(), { redirect_uri: 'https://attacker.example/callback' });
    expect(refused.statusCode).toBe(400);
    expect(refused.headers.location).toBeUndefined();
  });
});

describe('a metadata document is refused', () => {
  const HUGE = { body: JSON.stringify({ padding: 'x'.repeat(10_000) }) };
  test.each<[string, () => string]>([
    ['of another client', () => publish({ client_id: 'https://host.example/other.json' })],
    ['without a client', () => publish({ client_id: undefined })],
    ['with a secret', () => publish({ client_secret: 'x' })],
    ['without redirect addresses', () => publish({ redirect_uris: [] })],
    ['with an address of plain http', () => publish({ redirect_uris: ['http://host.example/callback'] })],
    ['with a script', () => publish({ redirect_uris: ['javascript:alert(1)'] })],
    ['that is no JSON', () => publish({}, { body: '<html>' })],
    ['that is a list', () => publish({}, { body: '[]' })],
    ['that is too long', () => publish({}, HUGE)],
    ['that does not exist', () => publish({}, { status: 404 })],
    ['of a server with an error', () => publish({}, { status: 500 })],
    [
      'behind a redirect',
      () => publish({}, { status: 302, headers: { location: `https://loopback.example:${site.port}/x` } }),
    ],
    ['without TLS', () => publish().replace('https:', 'http:')],
    ['with a user in its URL', () => publish().replace('https://', 'https://user@')],
    ['with a fragment in its URL', () => `${publish()}#x`],
    ['with dots in its URL', () => publish().replace('/clients/', '/clients/../clients/')],
  ])('%s', async (_, arrange) => {
    const answer = await authorize(arrange());
    expect(answer.statusCode).toBe(400);
    expect(answer.headers['content-type']).toContain('text/html');
    expect(answer.body).not.toContain('127.0.0.');
  });

  test.each([
    ...Object.keys(INTERNAL),
    '127.0.0.2',
    '[::1]',
    '[::ffff:10.0.0.1]',
    '0x7f000002',
    '2130706434',
    'localhost',
  ])('at the internal address %s, without a connection', async (host) => {
    const before = site.connections();
    const answer = await authorize(`https://${host}:${site.port}/client.json`);
    expect(answer.statusCode).toBe(400);
    expect(site.connections()).toBe(before);
  });

  test('one network does not read more than its share at the same time, and others go on', async () => {
    const authorizeFrom = async (ip: string, clientId = publish()) => {
      const url = createOauthClient(app, clientId).authorizePath();
      return (await app.app.inject({ url, headers: { 'x-forwarded-for': ip } })).statusCode;
    };
    const sendAnswers = site.holdAnswers();
    const answered: number[] = [];
    const answers = Array.from({ length: 40 }, async () => {
      answered.push(await authorizeFrom('192.0.2.77'));
    });
    await eventually(() => expect(answered).toEqual(Array(28).fill(400)));
    const clientId = publish();
    const other = authorizeFrom('192.0.2.78', clientId);
    await eventually(() => expect(site.requests.some((path) => clientId.endsWith(path))).toBe(true));
    sendAnswers();
    await Promise.all(answers);
    expect(answered.slice(28)).toEqual(Array(12).fill(303));
    expect(await other).toBe(303);
  });
});
