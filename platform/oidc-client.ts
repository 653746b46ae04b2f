import { LRUCache } from 'lru-cache';
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  getJwksCache,
  type IDToken,
  type ServerMetadata,
  setJwksCache,
  type UserInfoResponse,
} from 'openid-client';
import { storableTime } from './database/storable.ts';
import { FetchFailure } from './egress/guarded-fetch.ts';

/** This service as a client of an OpenID provider. */
export interface OidcSettings {
  /** Metadata and keys are cached for it. */
  id: string;
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Of this service, registered at the provider. */
  redirectUri: string;
  /** Metadata and keys that were read before are not used. */
  keysReadAt: Date | null;
}

/** What the service keeps between its request to the provider and the answer. */
export interface OidcSecrets {
  state: string;
  nonce: string;
  /** PKCE (RFC 7636). */
  codeVerifier: string;
}

export interface OidcAnswer {
  /** Of the callback, as the provider sent them. */
  parameters: URLSearchParams;
  secrets: OidcSecrets;
  /**
   * Returns the settings with which metadata and keys are read again, once, if the ID token is signed with an unknown key
   * (OpenID Connect Core section 10.1.1); undefined if they were just read.
   */
  renewKeys?(): Promise<OidcSettings | undefined>;
}

export interface OidcIdentity {
  /** Of the ID token, with those of UserInfo if it has no address. */
  claims: IDToken;
  /** Key and algorithm of the signature, for people. */
  signature: string;
}

/** What an answer has to pass. */
export type OidcCheck =
  | 'provider'
  | 'response'
  | 'signature'
  | 'issuer'
  | 'audience'
  | 'nonce'
  | 'time'
  | 'subject';

/** A provider that cannot be used, or an answer that is refused. */
export class OidcFailure extends Error {
  readonly check: OidcCheck;
  /** What the provider sent, without tokens and secrets. */
  readonly seen: unknown;
  readonly expected: unknown;

  constructor(check: OidcCheck, facts: { seen?: unknown; expected?: unknown; cause?: unknown }) {
    super(`The check of the ${check} failed`, { cause: facts.cause });
    this.check = check;
    this.seen = facts.seen;
    this.expected = facts.expected;
  }
}

/** The provider may have published the key of the signature since its keys were read. */
class UnknownKey extends OidcFailure {}

type OidcFetch = NonNullable<Configuration[typeof customFetch]>;

export interface OidcClientOptions {
  /** With limits of time and size. Returns redirects instead of following them. */
  fetch: OidcFetch;
  /** Providers without TLS, for development. */
  allowHttp: boolean;
}

const TIMEOUT_SECONDS = 15;
const METADATA_LIFETIME_MS = 10 * 60_000;
const MAX_CACHED_PROVIDERS = 500;
/** Clocks differ. */
const TOLERANCE_SECONDS = 60;

interface KnownProvider {
  metadata: ServerMetadata;
  keys: ReturnType<typeof getJwksCache>;
}

export type OidcClient = ReturnType<typeof createOidcClient>;

/** Authorization code flow with PKCE (OpenID Connect Core section 3.1). Each function throws {@link OidcFailure}. */
export function createOidcClient({ fetch, allowHttp }: OidcClientOptions) {
  const known = new LRUCache<string, KnownProvider>({ max: MAX_CACHED_PROVIDERS, ttl: METADATA_LIFETIME_MS });

  async function discover({ id, issuer, clientId, keysReadAt }: OidcSettings): Promise<KnownProvider> {
    const key = JSON.stringify([id, issuer, keysReadAt]);
    const cached = known.get(key);
    if (cached) return cached;
    const execute = allowHttp ? [allowInsecureRequests] : [];
    const metadata = await discovery(new URL(issuer), clientId, {}, undefined, {
      execute,
      [customFetch]: fetch,
      timeout: TIMEOUT_SECONDS,
    }).then(
      (found) => found.serverMetadata(),
      (cause) => {
        throw new OidcFailure('provider', {
          seen: describe(cause),
          expected: 'OpenID Connect discovery',
          cause,
        });
      },
    );
    // openid-client lets multi-tenant issuers of Microsoft pass, where every tenant could name every address.
    requireThat('provider', isSameUrl(metadata.issuer, issuer), metadata.issuer, issuer);
    // A browser is sent there.
    const endpoint = metadata.authorization_endpoint;
    const protocol = URL.parse(endpoint ?? '')?.protocol;
    const isSafe = protocol === 'https:' || (allowHttp && protocol === 'http:');
    requireThat('provider', isSafe, endpoint, 'an https URL as authorization endpoint');
    const provider = { metadata, keys: undefined };
    known.set(key, provider);
    return provider;
  }

  function configure(
    { clientId, clientSecret }: OidcSettings,
    { metadata, keys }: KnownProvider,
    fetchForLogin = fetch,
  ): Configuration {
    const configuration = new Configuration(metadata, clientId, {}, authenticateClient(clientSecret));
    configuration[customFetch] = fetchForLogin;
    configuration.timeout = TIMEOUT_SECONDS;
    // Without it, openid-client accepts an ID token with a wrong signature.
    enableNonRepudiationChecks(configuration);
    if (allowHttp) allowInsecureRequests(configuration);
    if (keys) setJwksCache(configuration, keys);
    return configuration;
  }

  async function exchange(
    settings: OidcSettings,
    { parameters, secrets }: OidcAnswer,
    tokens: TokenResponse,
  ): Promise<OidcIdentity> {
    const provider = await discover(settings);
    const configuration = configure(settings, provider, tokens.fetch);
    const currentUrl = new URL(settings.redirectUri);
    currentUrl.search = parameters.toString();
    let granted: Awaited<ReturnType<typeof authorizationCodeGrant>>;
    try {
      granted = await authorizationCodeGrant(configuration, currentUrl, {
        pkceCodeVerifier: secrets.codeVerifier,
        expectedState: secrets.state,
        expectedNonce: secrets.nonce,
        idTokenExpected: true,
      });
    } catch (error) {
      throw toFailure(error, { parameters, key: await tokens.describeKey() });
    } finally {
      provider.keys = getJwksCache(configuration);
    }
    const claims = granted.claims();
    if (!claims) throw new OidcFailure('response', { seen: 'no ID token', expected: 'an ID token' });
    requireOwnToken(claims, settings);
    const profile = await readProfile(configuration, granted.access_token, claims);
    return { claims: { ...profile, ...claims }, signature: await tokens.describeKey() };
  }

  return {
    /** Reads metadata of the provider, unless it was read a moment ago. */
    async readProvider(settings: OidcSettings): Promise<void> {
      await discover(settings);
    },

    /** Where the browser goes. @param parameters additional ones, for example `login_hint`. */
    async authorizationUrl(
      settings: OidcSettings,
      { state, nonce, codeVerifier }: OidcSecrets,
      parameters: Record<string, string> = {},
    ): Promise<string> {
      const provider = await discover(settings);
      const url = buildAuthorizationUrl(configure(settings, provider), {
        redirect_uri: settings.redirectUri,
        scope: 'openid email profile',
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
        ...parameters,
      });
      return url.href;
    },

    /** Exchanges the code and checks the ID token. */
    async readAnswer(settings: OidcSettings, answer: OidcAnswer): Promise<OidcIdentity> {
      const tokens = createTokenResponse(fetch);
      try {
        return await exchange(settings, answer, tokens);
      } catch (error) {
        const renewed = error instanceof UnknownKey ? await answer.renewKeys?.() : undefined;
        if (!renewed) throw error;
        return exchange(renewed, answer, tokens);
      }
    },
  };
}

type TokenResponse = ReturnType<typeof createTokenResponse>;

/** A code works once. When the answer to it is read again with other keys, the provider is not asked again. */
function createTokenResponse(fetch: OidcFetch) {
  let response: Promise<Response> | undefined;
  return {
    fetch: (async (url, request) => {
      // The exchange of the code is the only POST.
      if (request.method !== 'POST') return fetch(url, request);
      response ??= fetch(url, request);
      return (await response).clone();
    }) satisfies OidcFetch,

    /** Key and algorithm in the header of the ID token. */
    async describeKey(): Promise<string> {
      try {
        const answer = (await (await response)?.clone().json()) as { id_token?: unknown } | undefined;
        const [header = ''] = String(answer?.id_token).split('.');
        const { kid, alg } = JSON.parse(Buffer.from(header, 'base64url').toString());
        return `key ${kid ?? 'without id'}, ${alg}`;
      } catch {
        return 'no ID token';
      }
    },
  };
}

/**
 * In the body if the provider takes it there, else in the header, which every provider must support that issues secrets (RFC 6749
 * section 2.3.1). In the header the secret is form-encoded, which some providers do not decode.
 */
function authenticateClient(secret: string): ClientAuth {
  const [post, basic] = [ClientSecretPost(secret), ClientSecretBasic(secret)];
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? [];
    return (methods.includes('client_secret_post') ? post : basic)(server, client, body, headers);
  };
}

/** Many providers state the address only at their UserInfo endpoint. */
async function readProfile(
  provider: Configuration,
  accessToken: string,
  { sub, email }: IDToken,
): Promise<Partial<UserInfoResponse>> {
  if (email !== undefined || provider.serverMetadata().userinfo_endpoint === undefined) return {};
  try {
    return await fetchUserInfo(provider, accessToken, sub);
  } catch (cause) {
    const seen = `UserInfo: ${describe(cause)}`;
    throw new OidcFailure('response', { seen, expected: 'the claims of the person', cause });
  }
}

/** What openid-client leaves out: `azp` beside a single audience (OpenID Connect Core section 3.1.3.7), and times in the future. */
function requireOwnToken({ azp, iat, auth_time: authTime }: IDToken, { clientId }: OidcSettings): void {
  requireThat('audience', azp === undefined || azp === clientId, { azp }, clientId);
  const latest = Date.now() / 1000 + TOLERANCE_SECONDS;
  for (const [what, seconds] of [
    ['issued', iat],
    ['signed in', authTime],
  ] as const)
    requireThat(
      'time',
      seconds === undefined || seconds <= latest,
      `${what} ${formatSeconds(seconds)}`,
      'not in the future',
    );
}

function requireThat(check: OidcCheck, passed: boolean, seen: unknown, expected: unknown): void {
  if (!passed) throw new OidcFailure(check, { seen, expected });
}

const CHECK_OF_CLAIM = new Map<unknown, OidcCheck>([
  ['iss', 'issuer'],
  ['aud', 'audience'],
  ['azp', 'audience'],
  ['nonce', 'nonce'],
  ['exp', 'time'],
  ['nbf', 'time'],
  ['iat', 'time'],
  ['sub', 'subject'],
]);

/** Finds the check that the library's error stands for, and what was seen. */
function toFailure(
  cause: unknown,
  { parameters, key }: { parameters: URLSearchParams; key: string },
): OidcFailure {
  const { message, code, cause: facts } = innermost(cause);
  const claim = facts?.claim ?? /^JWT "(\w+)" .* claim missing$/.exec(message)?.[1];
  const { expected } = facts ?? {};
  const check = CHECK_OF_CLAIM.get(claim);
  // The nonce is a secret.
  if (check === 'nonce') return new OidcFailure(check, { cause });
  if (check) return new OidcFailure(check, { seen: facts?.claims?.[String(claim)], expected, cause });
  if (/"iss" \(issuer\)/.test(message))
    return new OidcFailure('issuer', { seen: parameters.get('iss') ?? 'none', expected, cause });
  if (code === 'OAUTH_KEY_SELECTION_FAILED' || /signature verification failed/.test(message))
    return new UnknownKey('signature', { seen: key, expected: 'a key that the provider publishes', cause });
  if (/signature|"alg"|JWS algorithm/.test(message))
    return new OidcFailure('signature', { seen: key, cause });
  return new OidcFailure('response', { seen: describe(cause), cause });
}

/** An error of oauth4webapi, which names the claim. */
interface LibraryError {
  message: string;
  code?: unknown;
  cause?: { claim?: unknown; claims?: Record<string, unknown>; expected?: unknown } | null;
}

/** openid-client wraps the errors of oauth4webapi. */
function innermost(error: unknown): LibraryError {
  const { cause } = error as { cause?: unknown };
  return cause instanceof Error ? innermost(cause) : (error as LibraryError);
}

/** What came instead of an answer. Contains no token: only OAuth error codes, HTTP statuses and messages. */
function describe(error: unknown): string {
  const { error: oauthError, status } = error as { error?: unknown; status?: unknown };
  if (typeof oauthError === 'string') return `error ${oauthError}`;
  const source = innermost(error);
  if (source instanceof FetchFailure)
    return source.code === 'blocked' ? source.message : `no answer (${source.code})`;
  const response = (error as { cause?: unknown }).cause;
  const httpStatus = response instanceof Response ? response.status : status;
  if (typeof httpStatus === 'number' && httpStatus !== 200) return `HTTP ${httpStatus}`;
  return source.message;
}

function isSameUrl(one: string, other: string): boolean {
  const [a, b] = [URL.parse(one), URL.parse(other)];
  return a !== null && a.href === b?.href;
}

/** The time of a claim; null for what is no time: providers may send any number. */
export function readSeconds(seconds: unknown): Date | null {
  return storableTime(typeof seconds === 'number' ? seconds * 1000 : Number.NaN);
}

export const formatSeconds = (seconds: unknown): string =>
  readSeconds(seconds)?.toISOString() ?? String(seconds);
