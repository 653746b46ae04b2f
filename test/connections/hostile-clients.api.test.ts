import { describe, expect, test } from '@jest/globals';
import { newNetwork } from '../support/accounts.ts';
import { connect, REDIRECT_URI, registerClient } from '../support/oauth-client.ts';
import { useTestApp } from '../support/resources.ts';
import { type LogLine, startTestApp } from '../support/test-app.ts';

const lines: LogLine[] = [];
const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' }, onLogLine: (line) => lines.push(line) });

const FORM = 'application/x-www-form-urlencoded';
const ENDPOINTS = ['/oauth/token', '/oauth/revoke', '/oauth/register'];
const post = (url: string, payload: string | Buffer, type: string | undefined = FORM, to = app) =>
  to.app.inject({
    method: 'POST',
    url,
    headers: { ...newNetwork(), ...(type === '' ? {} : { 'content-type': type }) },
    payload,
  });

/** An answer that programs can read: a code of OAuth, and a description in its characters. */
function expectOauthError({ statusCode, body, headers }: Awaited<ReturnType<typeof post>>, status?: number) {
  if (status !== undefined) expect({ body, statusCode }).toEqual({ body, statusCode: status });
  expect(headers['content-type']).toMatch(/^application\/json/);
  expect(JSON.parse(body)).toEqual({
    error: expect.stringMatching(/^[a-z_]+$/),
    error_description: expect.stringMatching(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/),
  });
}

describe('an endpoint for programs answers an error of OAuth', () => {
  const cases: [string, string | Buffer, string?][] = [
    ['an empty body', ''],
    ['no content type', 'a=b', ''],
    ['JSON', '{"grant_type":"authorization_code"}', 'application/json'],
    ['broken JSON', '{', 'application/json'],
    ['a list', '[]', 'application/json'],
    ['null', 'null', 'application/json'],
    ['plain text', 'hello', 'text/plain'],
    ['several parts', '--x--', 'multipart/form-data; boundary=x'],
    ['bytes that are no text', Buffer.from([0xff, 0xfe, 0, 0x3d])],
    ['NUL', 'grant_type=authorization_code&code=%00&client_id=%00&redirect_uri=%00&token=%00'],
    ['half a percent code', 'grant_type=%&client_id=%E0%A4%A'],
    ['repeated parameters', 'grant_type=refresh_token&grant_type=refresh_token&client_id=a&client_id=b'],
    ['brackets', 'grant_type[]=refresh_token&client_id[__proto__]=x&__proto__=y&constructor=z&token[a]=b'],
    ['a prototype', '{"__proto__":{"redirect_uris":["https://a.example"]}}', 'application/json'],
    ['a thousand parameters', Array.from({ length: 1_000 }, (_, index) => `p${index}=1`).join('&')],
    ['20 KiB', `grant_type=${'a'.repeat(20_000)}`],
    ['an unknown client', 'grant_type=authorization_code&client_id=app_none&code=x&token=x'],
    [
      'a document at an internal address',
      'grant_type=refresh_token&client_id=https%3A%2F%2F127.0.0.1%2Fc.json',
    ],
    ['a client secret', 'grant_type=refresh_token&client_id=a&client_secret=b&refresh_token=c'],
    ['an assertion', 'grant_type=x&client_assertion=a.b.c&client_assertion_type=urn:x&client_id=a'],
    ['another grant', 'grant_type=client_credentials&client_id=a'],
    ['deep nesting', `{"redirect_uris":${'['.repeat(3_000)}${']'.repeat(3_000)}}`, 'application/json'],
  ];
  test.each(cases)('%s', async (...[, payload, type]) => {
    for (const url of ENDPOINTS) {
      const answer = await post(url, payload, type);
      expect({
        url,
        body: answer.body,
        isRefused: answer.statusCode >= 400 && answer.statusCode < 500,
      }).toEqual({
        url,
        body: answer.body,
        isRefused: true,
      });
      expectOauthError(answer);
    }
  });

  test('headers that name another client, host or address', async () => {
    const { client, tokens } = await connect(app);
    const payload = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: tokens.refresh_token,
      client_id: client.clientId,
    }).toString();
    for (const authorization of [
      'Basic YTpi',
      'Basic !!',
      'Bearer x',
      'DPoP x',
      `Basic ${'x'.repeat(5_000)}`,
    ]) {
      const headers = {
        ...newNetwork(),
        'content-type': FORM,
        authorization,
        host: 'evil.example',
        dpop: 'x',
      };
      const answer = await app.app.inject({ method: 'POST', url: '/oauth/token', headers, payload });
      expect({ authorization, status: answer.statusCode }).toMatchObject({ status: expect.any(Number) });
      expect(answer.statusCode).toBeLessThan(500);
      expect(answer.body).not.toContain('evil.example');
    }
  });

  test.each([
    { redirect_uris: [7] },
    { redirect_uris: 'https://a.example' },
    { redirect_uris: {} },
    { redirect_uris: [''] },
    { redirect_uris: ['https://'] },
    { redirect_uris: ['https://a.example/\u0000'] },
    { redirect_uris: ['https://a.example/#f'] },
    { redirect_uris: ['https://localhost/x'] },
    { redirect_uris: ['http://127.0.0.1.evil.example/'] },
    { redirect_uris: ['http://2130706433.evil.example/'] },
    { redirect_uris: ['javascript:alert(1)//https:'] },
    { redirect_uris: ['data:text/html,x'] },
    { redirect_uris: Array(21).fill('https://a.example') },
  ])('to the registration %j', async (metadata) => {
    const answer = await post('/oauth/register', JSON.stringify(metadata), 'application/json');
    expectOauthError(answer, 400);
  });

  test.each([
    {},
    { client_name: 7 },
    { client_name: '\u200b' },
    { client_name: 'x'.repeat(9_000) },
    { client_uri: 'javascript:alert(1)' },
    { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [7] } },
    { subject_type: 'pairwise', sector_identifier_uri: 'https://127.0.0.1/x' },
    { default_max_age: 'x', require_auth_time: 7, scope: {}, contacts: 'x', application_type: [] },
  ])('but takes what it can leave out: %j', async (metadata) => {
    const payload = JSON.stringify({ redirect_uris: [REDIRECT_URI], ...metadata });
    expect((await post('/oauth/register', payload, 'application/json')).statusCode).toBe(201);
  });
});

test('requests for authorization are never an error of the service, and never lead elsewhere', async () => {
  const client = await registerClient(app);
  const odd: Record<string, string>[] = [
    { scope: '\ud800' },
    { scope: 'x'.repeat(4_000) },
    { state: '\ud800"<script>' },
    { code_challenge: '\u{1f600}' },
    { code_challenge: 'a'.repeat(3_000) },
    { code_challenge_method: 'none' },
    { resource: 'not a url' },
    { resource: '' },
    { redirect_uri: '' },
    { redirect_uri: `${REDIRECT_URI}?code=stolen` },
    { redirect_uri: `${REDIRECT_URI}#x` },
    { redirect_uri: 'https://host.example:443/callback' },
    { redirect_uri: 'HTTPS://HOST.EXAMPLE/callback' },
    { redirect_uri: 'https://host.example\\@evil.example/callback' },
    { client_id: 'https://127.0.0.1/client.json' },
    { client_id: 'https://[::1]/client.json' },
    { client_id: 'https://user:pass@host.example/client.json' },
    { client_id: 'https://host.example/a/../client.json' },
    { client_id: 'http://host.example/client.json' },
    { client_id: 'https://host.example' },
    { client_id: `https://host.example/${'a'.repeat(3_000)}` },
    { client_id: '\ud800' },
    { response_type: '' },
    { response_type: 'code code' },
    { request_uri: 'http://169.254.169.254/latest' },
    { request: 'a.b.c' },
    { registration: '{' },
    { claims: '{' },
    { max_age: '-1' },
    { id_token_hint: 'a.b.c' },
    { dpop_jkt: 'x' },
    { authorization_details: '{' },
  ];
  for (const parameters of odd) {
    const url = client.authorizePath(parameters);
    const { statusCode, headers } = await app.app.inject({ url, headers: newNetwork() });
    const target = String(headers.location ?? '');
    expect({ parameters, isError: statusCode >= 500 }).toEqual({ parameters, isError: false });
    expect({ parameters, target }).toEqual({
      parameters,
      target: expect.stringMatching(/^(?:|\/connect\/[\w-]+|https:\/\/host\.example\/callback\?error=.*)$/),
    });
  }
  for (const twice of ['client_id', 'redirect_uri', 'code_challenge', 'state', 'resource', 'scope']) {
    const url = `${client.authorizePath()}&${twice}=x`;
    const { statusCode, headers } = await app.app.inject({ url, headers: newNetwork() });
    expect({ twice, isError: statusCode >= 500 }).toEqual({ twice, isError: false });
    expect(String(headers.location ?? '')).not.toContain('evil');
  }
});

describe('a database that does not answer', () => {
  test('is 503 with an error of OAuth, a time to repeat, and one entry in the log', async () => {
    const failed: LogLine[] = [];
    const broken = await startTestApp({
      databaseUrl: 'postgresql://agent_email_api:x@127.0.0.1:1/none',
      onLogLine: (line) => failed.push(line),
    });
    const registration = JSON.stringify({ redirect_uris: [REDIRECT_URI] });
    const form = 'grant_type=refresh_token&client_id=app_x&refresh_token=crt_x&token=crt_x';
    for (const [url, payload, type] of [
      ['/oauth/token', form, FORM],
      ['/oauth/revoke', form, FORM],
      ['/oauth/register', registration, 'application/json'],
    ] as const) {
      failed.length = 0;
      const answer = await post(url, payload, type, broken);
      expectOauthError(answer, 503);
      expect(answer.json().error).toBe('temporarily_unavailable');
      expect(answer.headers['retry-after']).toBe('5');
      expect(failed.filter(({ level }) => level >= 50)).toEqual([
        expect.objectContaining({ code: 'unavailable', err: expect.anything() }),
      ]);
    }
    const page = await broken.app.inject({
      url: '/oauth/authorize?response_type=code&client_id=app_x&redirect_uri=https%3A%2F%2Fhost.example%2Fcallback&code_challenge=x&code_challenge_method=S256',
      headers: { accept: 'text/html' },
    });
    expect(page.statusCode).toBe(503);
    expect(page.headers['content-type']).toContain('text/html');
    await broken.close();
  });
});

test('no input of this file made the service report an error of its own', () => {
  expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
});
