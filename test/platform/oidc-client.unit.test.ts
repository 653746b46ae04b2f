import { createHash, createSign, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { FetchFailure } from '../../platform/egress/guarded-fetch.ts';
import {
  createOidcClient,
  formatSeconds,
  type OidcAnswer,
  OidcFailure,
  type OidcSettings,
  readSeconds,
} from '../../platform/oidc-client.ts';

const ISSUER = 'https://idp.example.test';
const SETTINGS: OidcSettings = {
  id: 'sso_1',
  issuer: ISSUER,
  clientId: 'client',
  clientSecret: 'a secret/with +signs',
  redirectUri: 'https://mail.test/sso/callback',
  keysReadAt: null,
};
const SECRETS = { state: 'state-1', nonce: 'nonce-1', codeVerifier: 'v'.repeat(43) };
const [OWN, OTHER] = [1, 2].map(() => generateKeyPairSync('rsa', { modulusLength: 2048 })) as [
  { privateKey: KeyObject; publicKey: KeyObject },
  { privateKey: KeyObject; publicKey: KeyObject },
];
const seconds = (fromNow: number) => Math.floor(Date.now() / 1_000) + fromNow;
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A signed ID token. */
function idToken(claims: object, header: object = {}, key = OWN.privateKey): string {
  const text = `${base64url({ alg: 'RS256', kid: 'own', ...header })}.${base64url({
    iss: ISSUER,
    aud: 'client',
    sub: 'person-1',
    email: 'ada@example.com',
    nonce: SECRETS.nonce,
    iat: seconds(0),
    exp: seconds(300),
    ...claims,
  })}`;
  return `${text}.${createSign('RSA-SHA256').update(text).sign(key, 'base64url')}`;
}

interface Published {
  metadata: object;
  /** Published keys by their id; at each read the next ones, and then the last. */
  keys: Record<string, KeyObject>[];
  token: unknown;
  tokenStatus: number;
  profile: Response | Error;
  discovery: Response | Error;
}

/** An OpenID provider without a network. */
function startProvider(published: Partial<Published> = {}, { allowHttp = false } = {}) {
  const {
    metadata = {},
    keys = [{ own: OWN.publicKey }],
    token = { id_token: idToken({}) },
    tokenStatus = 200,
    profile,
  } = published;
  const requests: { path: string; method: string; headers: Headers; body: string }[] = [];
  const answer = (path: string): Response | Error => {
    const endpoint = (name: string) => `${ISSUER}/${name}`;
    if (path.endsWith('/.well-known/openid-configuration'))
      return (
        published.discovery ??
        Response.json({
          issuer: ISSUER,
          authorization_endpoint: endpoint('authorize'),
          token_endpoint: endpoint('token'),
          userinfo_endpoint: endpoint('profile'),
          jwks_uri: endpoint('keys'),
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
          ...metadata,
        })
      );
    if (path === '/keys') {
      const current = (keys.length > 1 ? keys.shift() : keys[0]) ?? {};
      const list = Object.entries(current).map(([kid, key]) => ({
        ...key.export({ format: 'jwk' }),
        kid,
        use: 'sig',
      }));
      return Response.json({ keys: list });
    }
    if (path === '/token')
      return Response.json(
        token instanceof Object ? { access_token: 'access', token_type: 'bearer', ...token } : token,
        { status: tokenStatus },
      );
    return profile ?? new Error(`unexpected ${path}`);
  };
  const client = createOidcClient({
    allowHttp,
    fetch: async (url, { method, headers, body }) => {
      const path = new URL(url).pathname;
      requests.push({ path, method, headers: new Headers(headers), body: String(body ?? '') });
      const response = answer(path);
      if (response instanceof Error) throw response;
      return response.clone();
    },
  });
  const paths = () => requests.map(({ path }) => path.slice(path.lastIndexOf('/') + 1));
  const readAnswer = (changes: Partial<OidcAnswer> & { query?: Record<string, string> } = {}) =>
    client.readAnswer(SETTINGS, {
      parameters: new URLSearchParams({ code: 'code-1', state: SECRETS.state, ...changes.query }),
      secrets: SECRETS,
      ...changes,
    });
  return { client, requests, paths, readAnswer };
}

const failure = (check: string, facts: object = {}) => expect.objectContaining({ check, ...facts });

describe('the address to which the browser is sent', () => {
  test('asks for a code with state, nonce and PKCE', async () => {
    const { client } = startProvider();
    const url = new URL(await client.authorizationUrl(SETTINGS, SECRETS, { login_hint: 'ada@example.com' }));
    expect(url.origin + url.pathname).toBe(`${ISSUER}/authorize`);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      response_type: 'code',
      client_id: 'client',
      redirect_uri: SETTINGS.redirectUri,
      scope: 'openid email profile',
      state: SECRETS.state,
      nonce: SECRETS.nonce,
      code_challenge: createHash('sha256').update(SECRETS.codeVerifier).digest('base64url'),
      code_challenge_method: 'S256',
      login_hint: 'ada@example.com',
    });
  });

  test.each([
    ['https://other.test/authorize', false, true],
    ['http://idp.example.test/authorize', false, false],
    ['http://idp.example.test/authorize', true, true],
    ['javascript:alert(1)', true, false],
    [undefined, true, false],
  ])('is %s, with HTTP allowed: %s, accepted: %s', async (endpoint, allowHttp, accepted) => {
    const { client } = startProvider({ metadata: { authorization_endpoint: endpoint } }, { allowHttp });
    const read = client.readProvider(SETTINGS);
    if (accepted) await expect(read).resolves.toBeUndefined();
    else
      await expect(read).rejects.toEqual(
        failure('provider', {
          seen: endpoint,
          expected: 'an https URL as authorization endpoint',
        }),
      );
  });
});

describe('the metadata of a provider', () => {
  test('is read once for each time that its keys are read', async () => {
    const { client, paths } = startProvider();
    await client.readProvider(SETTINGS);
    await client.authorizationUrl(SETTINGS, SECRETS);
    expect(paths()).toHaveLength(1);
    await client.readProvider({ ...SETTINGS, keysReadAt: new Date(0) });
    await client.readProvider({ ...SETTINGS, id: 'sso_2' });
    expect(paths()).toHaveLength(3);
  });

  test('is read again after a failure', async () => {
    const { client, paths } = startProvider({ discovery: new Response(null, { status: 503 }) });
    for (let attempt = 0; attempt < 2; attempt += 1)
      await expect(client.readProvider(SETTINGS)).rejects.toEqual(failure('provider'));
    expect(paths()).toHaveLength(2);
  });

  test('names the issuer, whose URL may be written in another way', async () => {
    const { client } = startProvider();
    await expect(client.readProvider({ ...SETTINGS, issuer: `${ISSUER}/` })).resolves.toBeUndefined();
  });

  test.each([
    ['that is missing', new Response(null, { status: 404 }), 'HTTP 404'],
    ['of a host that does not answer', new FetchFailure('timeout', 'no answer'), 'no answer (timeout)'],
    ['of a host that the guard refuses', new FetchFailure('blocked', 'not public'), 'not public'],
    ['that is no JSON', new Response('<html>', { status: 200 }), expect.not.stringMatching(/^HTTP/)],
    [
      'of another issuer',
      Response.json({ issuer: 'https://evil.test', authorization_endpoint: 'https://evil.test/a' }),
      expect.any(String),
    ],
  ])('%s is refused', async (_name, discovery, seen) => {
    const { client } = startProvider({ discovery });
    await expect(client.readProvider(SETTINGS)).rejects.toBeInstanceOf(OidcFailure);
    await expect(client.readProvider(SETTINGS)).rejects.toEqual(
      failure('provider', { seen, expected: expect.any(String) }),
    );
  });

  test('of every tenant of Microsoft is refused: each could name every address', async () => {
    const tenants = 'https://login.microsoftonline.com/common/v2.0';
    const issuer = 'https://login.microsoftonline.com/{tenantid}/v2.0';
    const { client } = startProvider({
      discovery: Response.json({ issuer, authorization_endpoint: 'https://login.microsoftonline.com/a' }),
    });
    await expect(client.readProvider({ ...SETTINGS, issuer: tenants })).rejects.toEqual(failure('provider'));
  });
});

describe('the exchange of a code', () => {
  test('proves with PKCE that this service asked for it', async () => {
    const { readAnswer, requests } = startProvider();
    await readAnswer();
    const { method, body } = requests.find(({ path }) => path === '/token') ?? {};
    expect(method).toBe('POST');
    expect(Object.fromEntries(new URLSearchParams(body))).toMatchObject({
      grant_type: 'authorization_code',
      code: 'code-1',
      code_verifier: SECRETS.codeVerifier,
      redirect_uri: SETTINGS.redirectUri,
    });
  });

  test.each([
    ['in the header, which every provider must support', undefined, false],
    ['in the header, if the provider takes it only there', ['client_secret_basic'], false],
    ['in the body, if the provider takes it there', ['client_secret_basic', 'client_secret_post'], true],
  ])('sends the secret %s', async (_name, methods, inBody) => {
    const { readAnswer, requests } = startProvider({
      metadata: { token_endpoint_auth_methods_supported: methods },
    });
    await readAnswer();
    const { headers, body } = requests.find(({ path }) => path === '/token') ?? {};
    const sent = new URLSearchParams(body);
    const basic = `Basic ${Buffer.from('client:a+secret%2Fwith+%2Bsigns').toString('base64')}`;
    expect(sent.get('client_secret')).toBe(inBody ? SETTINGS.clientSecret : null);
    expect(headers?.get('authorization')).toBe(inBody ? null : basic);
  });
});

describe('an answer', () => {
  test('names the person by the claims of the ID token', async () => {
    const { readAnswer, paths } = startProvider();
    expect(await readAnswer()).toEqual({
      claims: expect.objectContaining({ sub: 'person-1', email: 'ada@example.com' }),
      signature: 'key own, RS256',
    });
    expect(paths()).not.toContain('profile');
  });

  test.each([
    ['meant for this client among others', { aud: ['other', 'client'], azp: 'client' }],
    ['issued a minute ahead of our clock', { iat: seconds(50), auth_time: seconds(50) }],
    ['that expired less than a minute ago', { exp: seconds(-20) }],
  ])('may have an ID token %s', async (_name, claims) => {
    const { readAnswer } = startProvider({ token: { id_token: idToken(claims) } });
    await expect(readAnswer()).resolves.toMatchObject({ claims });
  });

  test.each<[string, object, string, object]>([
    ['of another issuer', { iss: 'https://evil.test' }, 'issuer', { seen: 'https://evil.test' }],
    ['for another client', { aud: 'other' }, 'audience', { seen: 'other', expected: 'client' }],
    ['for two clients, without azp', { aud: ['other', 'client'] }, 'audience', {}],
    [
      'that another client asked for',
      { azp: 'other' },
      'audience',
      { seen: { azp: 'other' }, expected: 'client' },
    ],
    ['of another request', { nonce: 'other' }, 'nonce', { seen: undefined, expected: undefined }],
    ['of no request', { nonce: undefined }, 'nonce', { seen: undefined, expected: undefined }],
    ['that has expired', { exp: seconds(-120) }, 'time', { seen: expect.any(Number) }],
    ['without an end', { exp: undefined }, 'time', {}],
    [
      'issued in the future',
      { iat: seconds(120) },
      'time',
      { seen: expect.stringMatching(/^issued 20.+Z$/), expected: 'not in the future' },
    ],
    [
      'of a sign-in in the future',
      { auth_time: seconds(120) },
      'time',
      { seen: expect.stringMatching(/^signed in 20.+Z$/) },
    ],
    ['that is not valid yet', { nbf: seconds(120) }, 'time', {}],
    ['without a time of issue', { iat: undefined }, 'time', {}],
    ['without a subject', { sub: undefined }, 'subject', {}],
  ])('with an ID token %s is refused', async (_name, claims, check, facts) => {
    const { readAnswer } = startProvider({ token: { id_token: idToken(claims) } });
    await expect(readAnswer()).rejects.toBeInstanceOf(OidcFailure);
    await expect(startProvider({ token: { id_token: idToken(claims) } }).readAnswer()).rejects.toEqual(
      failure(check, facts),
    );
  });

  test.each<[string, Partial<Published>, Record<string, string>, string, unknown]>([
    ['with an error', {}, { error: 'access_denied' }, 'response', 'error access_denied'],
    ['of another browser', {}, { state: 'other' }, 'response', expect.stringMatching(/state/)],
    ['of another provider', {}, { iss: 'https://evil.test' }, 'issuer', 'https://evil.test'],
    [
      'that does not name its provider, though it says that it does',
      { metadata: { authorization_response_iss_parameter_supported: true } },
      {},
      'issuer',
      'none',
    ],
    [
      'whose code is refused',
      { token: { error: 'invalid_grant' }, tokenStatus: 400 },
      {},
      'response',
      'error invalid_grant',
    ],
    ['to which the token endpoint fails', { token: 'x', tokenStatus: 502 }, {}, 'response', 'HTTP 502'],
    ['without an ID token', { token: {} }, {}, 'response', expect.any(String)],
    [
      'with a broken ID token',
      { token: { id_token: 'a.b.c' } },
      {},
      expect.stringMatching(/^(?:response|signature)$/) as unknown as string,
      expect.any(String),
    ],
    [
      'signed with another key of this id',
      { token: { id_token: idToken({}, {}, OTHER.privateKey) } },
      {},
      'signature',
      'key own, RS256',
    ],
    [
      'signed with a key that is not published',
      { token: { id_token: idToken({}, { kid: 'unknown' }) } },
      {},
      'signature',
      'key unknown, RS256',
    ],
    [
      'with an algorithm that was not agreed',
      { token: { id_token: idToken({}, { alg: 'HS256' }) } },
      {},
      'signature',
      'key own, HS256',
    ],
    [
      'without a signature',
      { token: { id_token: `${base64url({ alg: 'none' })}.${base64url({})}.` } },
      {},
      'signature',
      'key without id, none',
    ],
  ])('%s is refused', async (_name, published, query, check, seen) => {
    const { readAnswer } = startProvider(published);
    await expect(readAnswer({ query })).rejects.toEqual(failure(check, { seen }));
  });
});

describe('the profile', () => {
  const withoutAddress = { id_token: idToken({ email: undefined }) };

  test('is asked for an address that the ID token does not have, and overrides none of its claims', async () => {
    const { readAnswer, requests } = startProvider({
      token: withoutAddress,
      profile: Response.json({ sub: 'person-1', email: 'ada@example.com', iss: 'https://evil.test' }),
    });
    expect((await readAnswer()).claims).toMatchObject({ email: 'ada@example.com', iss: ISSUER });
    expect(requests.at(-1)?.headers.get('authorization')?.toLowerCase()).toBe('bearer access');
  });

  test('is not asked for, if the provider has none', async () => {
    const { readAnswer } = startProvider({
      token: withoutAddress,
      metadata: { userinfo_endpoint: undefined },
    });
    expect((await readAnswer()).claims.email).toBeUndefined();
  });

  test.each([
    ['of another person', Response.json({ sub: 'person-2' }), expect.stringMatching(/^UserInfo: /)],
    ['that fails', new Response(null, { status: 500 }), 'UserInfo: HTTP 500'],
  ])('%s refuses the answer', async (_name, profile, seen) => {
    await expect(startProvider({ token: withoutAddress, profile }).readAnswer()).rejects.toEqual(
      failure('response', { seen, expected: 'the claims of the person' }),
    );
  });
});

describe('a key that is not known yet', () => {
  const token = { id_token: idToken({}, { kid: 'new' }, OTHER.privateKey) };
  const renewed = { ...SETTINGS, keysReadAt: new Date(0) };

  test('is read again once, and the code is not exchanged again', async () => {
    const keys: Published['keys'] = [{ own: OWN.publicKey }, { new: OTHER.publicKey }];
    const { readAnswer, paths } = startProvider({ token, keys });
    await expect(readAnswer({ renewKeys: async () => renewed })).resolves.toMatchObject({
      signature: 'key new, RS256',
    });
    expect(paths().filter((path) => path === 'token')).toHaveLength(1);
  });

  test('refuses the answer, if it is not published either', async () => {
    let asked = 0;
    const renewKeys = async () => {
      asked += 1;
      return renewed;
    };
    await expect(startProvider({ token }).readAnswer({ renewKeys })).rejects.toEqual(failure('signature'));
    expect(asked).toBe(1);
  });

  test('refuses the answer, if keys were just read', async () => {
    const { readAnswer } = startProvider({ token });
    await expect(readAnswer({ renewKeys: async () => undefined })).rejects.toEqual(
      failure('signature', { seen: 'key new, RS256', expected: 'a key that the provider publishes' }),
    );
  });

  test('is not looked for where something else is wrong', async () => {
    let asked = 0;
    const { readAnswer } = startProvider({ token: { id_token: idToken({ aud: 'other' }) } });
    const renewKeys = async () => {
      asked += 1;
      return renewed;
    };
    await expect(readAnswer({ renewKeys })).rejects.toEqual(failure('audience'));
    expect(asked).toBe(0);
  });

  test('is found among the keys that were read for an earlier answer', async () => {
    const { readAnswer, paths } = startProvider();
    await readAnswer();
    await readAnswer();
    expect(paths().filter((path) => path === 'keys')).toHaveLength(1);
  });
});

test('a provider without TLS works only where HTTP is allowed', async () => {
  const issuer = 'http://idp.example.test';
  const read = (allowHttp: boolean) =>
    startProvider({ metadata: { issuer } }, { allowHttp }).client.readProvider({ ...SETTINGS, issuer });
  await expect(read(true)).resolves.toBeUndefined();
  await expect(read(false)).rejects.toEqual(failure('provider'));
  const metadata = { token_endpoint: 'http://idp.example.test/token' };
  await expect(startProvider({ metadata }, { allowHttp: true }).readAnswer()).resolves.toBeDefined();
  await expect(startProvider({ metadata }).readAnswer()).rejects.toEqual(failure('response'));
});

test.each([
  [0, '1970-01-01T00:00:00.000Z'],
  [1_800_000_000, '2027-01-15T08:00:00.000Z'],
  [1e300, '1e+300'],
  ['1800000000', '1800000000'],
  [undefined, 'undefined'],
])('the time %j is shown as %s', (value, shown) => {
  expect(formatSeconds(value)).toBe(shown);
  expect(readSeconds(value)?.toISOString() ?? null).toBe(shown.endsWith('Z') ? shown : null);
});
