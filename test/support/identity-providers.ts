import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from '@jest/globals';
import Provider from 'oidc-provider';

export const OIDC_CLIENT = { clientId: 'agent-email', clientSecret: 'a-client-secret-of-the-tests' };

async function listen(listener: RequestListener): Promise<{ server: Server; origin: string }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}

/** Without the lines that say why such a provider is not for production. */
function createQuietly(issuer: string, configuration: object): Provider {
  const { info, warn } = console;
  console.info = console.warn = () => undefined;
  try {
    return new Provider(issuer, configuration);
  } finally {
    Object.assign(console, { info, warn });
  }
}

/** A real OpenID provider (`oidc-provider`), whose users have any address they type in. */
export async function startOidcProvider(redirectUri: string) {
  let listener: RequestListener = () => undefined;
  const { server, origin } = await listen((request, response) => listener(request, response));
  const provider = createQuietly(origin, {
    clients: [
      {
        client_id: OIDC_CLIENT.clientId,
        client_secret: OIDC_CLIENT.clientSecret,
        redirect_uris: [redirectUri],
      },
    ],
    findAccount: (_context: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId, email: accountId, email_verified: true, name: 'Grace Hopper' }),
    }),
    claims: { openid: ['sub', 'auth_time'], email: ['email', 'email_verified'], profile: ['name'] },
    cookies: { keys: ['test'] },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true } },
    // Its defaults announce themselves when they are used first.
    ttl: { AccessToken: 3_600, Grant: 3_600, IdToken: 3_600, Interaction: 3_600, Session: 3_600 },
  });
  listener = provider.callback();
  return { issuer: origin, close: () => stop(server) };
}

/** A browser at an identity provider, with its cookies. Returns where it is sent in the end. */
export async function signInAtOidcProvider(
  url: string,
  login: string,
  jar = new Map<string, string>(),
): Promise<URL> {
  let next: { url: string; form?: Record<string, string> } = { url };
  for (let step = 0; step < 12; step += 1) {
    const response = await fetch(next.url, {
      redirect: 'manual',
      headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(next.form ? { method: 'POST', body: new URLSearchParams(next.form) } : {}),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    const location = response.headers.get('location');
    if (location !== null) {
      const target = new URL(location, next.url);
      if (target.origin !== new URL(url).origin) return target;
      next = { url: target.href };
      continue;
    }
    const page = await response.text();
    const [, action] = /<form[^>]*action="([^"]+)"/.exec(page) ?? [];
    if (response.status >= 400 || action === undefined) throw new Error(`${response.status} ${page}`);
    const [, prompt = ''] = /name="prompt" value="(\w+)"/.exec(page) ?? [];
    next = {
      url: new URL(action.replaceAll('&amp;', '&'), next.url).href,
      form: prompt === 'login' ? { prompt, login, password: 'x' } : { prompt },
    };
  }
  throw new Error('The provider does not come to an end');
}

const base64url = (value: object | Buffer): string =>
  (Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value))).toString('base64url');

export interface ForgedToken {
  claims: Record<string, unknown>;
  header?: Record<string, unknown>;
  key?: KeyObject;
}

const { clientId } = OIDC_CLIENT;

/** Audiences and authorized parties of an ID token, and whether the service accepts it (OpenID Connect Core section 3.1.3.7). */
export const AUTHORIZED_PARTIES: [string, Record<string, unknown>, boolean][] = [
  ['the service as its only audience', { aud: clientId }, true],
  ['the service as its only audience, in a list', { aud: [clientId] }, true],
  ['the service as audience and authorized party', { aud: clientId, azp: clientId }, true],
  [
    'several audiences and the service as authorized party',
    { aud: [clientId, 'other'], azp: clientId },
    true,
  ],
  ['several audiences and no authorized party', { aud: [clientId, 'other'] }, false],
  ['several audiences and another authorized party', { aud: [clientId, 'other'], azp: 'other' }, false],
  ['one audience and another authorized party', { aud: clientId, azp: 'other' }, false],
  ['one audience in a list and another authorized party', { aud: [clientId], azp: 'other' }, false],
  ['an empty authorized party', { aud: clientId, azp: '' }, false],
  ['null as authorized party', { aud: clientId, azp: null }, false],
  ['a list as authorized party', { aud: clientId, azp: [clientId] }, false],
  [
    'other audiences and the service as authorized party',
    { aud: ['other', 'another'], azp: clientId },
    false,
  ],
];

/** Methods of client authentication that a provider's metadata lists, and the one that the service uses. */
export const CLIENT_AUTHENTICATIONS: [string[] | undefined, 'body' | 'header'][] = [
  [['client_secret_post', 'client_secret_basic'], 'body'],
  [['client_secret_basic', 'client_secret_post'], 'body'],
  [['client_secret_post'], 'body'],
  [['client_secret_basic'], 'header'],
  [['private_key_jwt'], 'header'],
  [[], 'header'],
  // The default (OpenID Connect Discovery section 3).
  [undefined, 'header'],
];

/** Expects that a request to the token endpoint has the client's secret in that place, and only there. */
export function expectClientAuthentication(
  request: { body: string; authorization: string | undefined } | undefined,
  place: 'body' | 'header',
): void {
  const body = new URLSearchParams(request?.body);
  const [scheme, credentials = ''] = request?.authorization?.split(' ') ?? [];
  const decoded = Buffer.from(credentials, 'base64').toString().split(':').map(decodeURIComponent);
  expect({
    body: [body.get('client_id'), body.get('client_secret')],
    header: scheme === undefined ? undefined : [scheme, ...decoded],
  }).toEqual({
    body: place === 'body' ? [clientId, OIDC_CLIENT.clientSecret] : [null, null],
    header: place === 'body' ? undefined : ['Basic', clientId, OIDC_CLIENT.clientSecret],
  });
}

/** An OpenID provider that lies in every way a test wants. */
export async function startForgingProvider() {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  let signing = { privateKey, publicKey, kid: 'k1' };
  const state = {
    /** Added to the metadata. */
    metadata: {} as Record<string, unknown>,
    /** The next answer of the token endpoint. */
    token: undefined as ForgedToken | undefined,
    /** Requests by path. */
    requests: [] as { path: string; body: string; authorization: string | undefined }[],
    /** Answers a path instead of the provider. */
    override: {} as Record<string, { status: number; headers?: Record<string, string>; body?: string }>,
  };
  const { server, origin } = await listen(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const path = new URL(request.url ?? '/', 'http://x').pathname;
    state.requests.push({ path, body, authorization: request.headers.authorization });
    const override = state.override[path];
    if (override) return void response.writeHead(override.status, override.headers).end(override.body ?? '');
    const answers: Record<string, () => object> = {
      '/.well-known/openid-configuration': () => ({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        jwks_uri: `${origin}/jwks`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
        ...state.metadata,
      }),
      '/jwks': () => ({
        keys: [
          { ...signing.publicKey.export({ format: 'jwk' }), kid: signing.kid, use: 'sig', alg: 'RS256' },
        ],
      }),
      '/token': () => ({
        access_token: 'access',
        token_type: 'Bearer',
        id_token: state.token && signToken(state.token, signing),
      }),
    };
    const answer = answers[path];
    response.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer?.() ?? {}));
  });
  /** The former key is published no more. */
  const rotateKey = () => {
    const kid = `k${Number(signing.kid.slice(1)) + 100}`;
    signing = { ...generateKeyPairSync('rsa', { modulusLength: 2048 }), kid };
  };
  return { issuer: origin, state, publicKey, rotateKey, close: () => stop(server) };
}

function signToken(
  { claims, header = {}, key }: ForgedToken,
  { privateKey: ownKey, kid }: { privateKey: KeyObject; kid: string },
): string {
  const fullHeader = { alg: 'RS256', kid, ...header };
  const input = `${base64url(fullHeader)}.${base64url(claims)}`;
  const { alg } = fullHeader;
  const signature =
    alg === 'none'
      ? Buffer.alloc(0)
      : alg === 'HS256'
        ? createHmac('sha256', key ?? ownKey)
            .update(input)
            .digest()
        : sign('sha256', Buffer.from(input), key ?? ownKey);
  return `${input}.${base64url(signature)}`;
}
