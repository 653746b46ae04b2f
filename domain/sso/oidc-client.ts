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
} from 'openid-client';
import { storableTime } from '../../platform/database/storable.ts';
import { FetchFailure, type GuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import { type SsoCheckName, type SsoChecks, UnknownKey } from './sso-checks.ts';

export interface OidcSettings {
  configurationId: string;
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Metadata and keys that were read before are not used. */
  keysReadAt: Date | null;
}

/** What a transaction keeps between the request to the identity provider and its answer. */
export interface OidcSecrets {
  state: string;
  nonce: string;
  verifier: string;
}

/** What the identity provider said, not yet checked against the configuration. */
export interface OidcIdentity {
  issuer: string;
  subject: string;
  email: unknown;
  emailVerified: unknown;
  name: unknown;
  authenticatedAt: Date | null;
}

export interface OidcClient {
  /** Reads metadata of the identity provider. @throws SsoRefusal if it cannot be reached or its metadata is wrong. */
  readProvider(settings: OidcSettings, checks: SsoChecks): Promise<void>;
  /** @param loginHint address that the person typed in. @throws SsoRefusal as {@link readProvider}. */
  authorizationUrl(
    settings: OidcSettings,
    request: OidcSecrets & { isFresh: boolean; loginHint?: string | undefined },
    checks: SsoChecks,
  ): Promise<string>;
  /**
   * Exchanges the code and checks the ID token.
   *
   * @param answer.parameters of the answer, as the identity provider sent them.
   * @param answer.renewKeys returns the settings with which metadata and keys are read again, once, if the ID token is signed with
   * an unknown key (OpenID Connect Core section 10.1.1); undefined if they were just read.
   * @throws SsoRefusal
   */
  readAnswer(settings: OidcSettings, answer: OidcAnswer, checks: SsoChecks): Promise<OidcIdentity>;
}

export interface OidcAnswer {
  parameters: URLSearchParams;
  secrets: OidcSecrets;
  renewKeys(): Promise<OidcSettings | undefined>;
}

export interface OidcClientOptions {
  fetch: GuardedFetch;
  /** Of this service, registered at the identity provider. */
  redirectUri: string;
  /** Identity providers without TLS, where the egress guard allows them: in development. */
  allowHttp: boolean;
}

const TIMEOUT_SECONDS = 15;
const METADATA_LIFETIME_MS = 10 * 60_000;
const MAX_CACHED_PROVIDERS = 500;
/** Clocks differ. */
const TOLERANCE_SECONDS = 60;

/** What is known of an identity provider. */
interface KnownProvider {
  metadata: ServerMetadata;
  keys: ReturnType<typeof getJwksCache>;
}

export function createOidcClient({ fetch, redirectUri, allowHttp }: OidcClientOptions): OidcClient {
  const known = new LRUCache<string, KnownProvider>({
    max: MAX_CACHED_PROVIDERS,
    ttl: METADATA_LIFETIME_MS,
  });
  const fetchAnything = asCustomFetch(fetch);

  async function discover(settings: OidcSettings, checks: SsoChecks): Promise<KnownProvider> {
    const { configurationId, issuer, clientId, clientSecret, keysReadAt } = settings;
    const key = JSON.stringify([configurationId, issuer, clientId, clientSecret, keysReadAt]);
    const cached = known.get(key);
    if (cached) return cached;
    let metadata: ServerMetadata;
    try {
      const found = await discovery(new URL(issuer), clientId, {}, clientSecretAs(clientSecret), {
        execute: allowHttp ? [allowInsecureRequests] : [],
        [customFetch]: fetchAnything,
        timeout: TIMEOUT_SECONDS,
      });
      metadata = found.serverMetadata();
    } catch (error) {
      return checks.fail('provider', describe(error), 'OpenID Connect discovery');
    }
    // openid-client lets multi-tenant issuers of Microsoft pass, where every tenant could name every address.
    checks.require('provider', isSameUrl(metadata.issuer, issuer), metadata.issuer, issuer);
    // A browser is sent there.
    const endpoint = metadata.authorization_endpoint;
    const protocol = URL.parse(endpoint ?? '')?.protocol;
    const isSafe = protocol === 'https:' || (allowHttp && protocol === 'http:');
    checks.require('provider', isSafe, endpoint, 'an https URL as authorization endpoint');
    const provider = { metadata, keys: undefined };
    known.set(key, provider);
    return provider;
  }

  function configure(
    { clientId, clientSecret }: OidcSettings,
    { metadata, keys }: KnownProvider,
    fetchForLogin = fetchAnything,
  ): Configuration {
    const configuration = new Configuration(metadata, clientId, {}, clientSecretAs(clientSecret));
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
    { tokens, checks }: { tokens: TokenFetch; checks: SsoChecks },
  ): Promise<OidcIdentity> {
    const provider = await discover(settings, checks);
    const configuration = configure(settings, provider, tokens.fetch);
    const currentUrl = new URL(redirectUri);
    currentUrl.search = parameters.toString();
    let granted: Awaited<ReturnType<typeof authorizationCodeGrant>>;
    try {
      granted = await authorizationCodeGrant(configuration, currentUrl, {
        pkceCodeVerifier: secrets.verifier,
        expectedState: secrets.state,
        expectedNonce: secrets.nonce,
        idTokenExpected: true,
      });
    } catch (error) {
      return failGrant(error, { parameters, header: tokens.idTokenHeader() }, checks);
    } finally {
      provider.keys = getJwksCache(configuration);
    }
    const claims = granted.claims();
    if (!claims) return checks.fail('response', 'no ID token', 'an ID token');
    passGrant(settings, { claims, header: tokens.idTokenHeader() }, checks);
    const profile = {
      ...(await readProfile(configuration, granted.access_token, claims, checks)),
      ...claims,
    };
    return {
      issuer: claims.iss,
      subject: claims.sub,
      email: profile.email,
      emailVerified: profile.email_verified,
      name: profile.name,
      authenticatedAt: toDate(claims.auth_time),
    };
  }

  return {
    async readProvider(settings, checks) {
      await discover(settings, checks);
    },

    async authorizationUrl(settings, { state, nonce, verifier, isFresh, loginHint }, checks) {
      const provider = await discover(settings, checks);
      const url = buildAuthorizationUrl(configure(settings, provider), {
        redirect_uri: redirectUri,
        scope: 'openid email profile',
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(loginHint === undefined ? {} : { login_hint: loginHint }),
        ...(isFresh ? { max_age: '0', prompt: 'login' } : {}),
      });
      return url.href;
    },

    async readAnswer(settings, answer, checks) {
      const tokens = createTokenFetch(fetch);
      const before = checks.all.length;
      try {
        return await exchange(settings, answer, { tokens, checks });
      } catch (error) {
        const renewed = error instanceof UnknownKey ? await answer.renewKeys() : undefined;
        if (!renewed) throw error;
        checks.restart(before);
        return exchange(renewed, answer, { tokens, checks });
      }
    },
  };
}

type CustomFetch = NonNullable<Configuration[typeof customFetch]>;

const asCustomFetch =
  (fetch: GuardedFetch): CustomFetch =>
  (url, request) =>
    fetch(url, { ...request, headers: { ...request.headers } });

interface TokenFetch {
  fetch: CustomFetch;
  /** Of the ID token that was received; undefined before, and if it is malformed. */
  idTokenHeader(): Record<string, unknown> | undefined;
}

/** A code works once. When the answer to it is read again with other keys, the identity provider is not asked again. */
function createTokenFetch(fetch: GuardedFetch): TokenFetch {
  const fetchAnything = asCustomFetch(fetch);
  let received: Promise<{ text: string; init: ResponseInit }> | undefined;
  let answered = '';
  return {
    async fetch(url, request) {
      // The exchange of the code is the only POST.
      if (request.method !== 'POST') return fetchAnything(url, request);
      received ??= fetchAnything(url, request).then(async (response) => ({
        text: await response.text(),
        init: { status: response.status, headers: response.headers },
      }));
      const { text, init } = await received;
      answered = text;
      return new Response(
        init.status === 204 || init.status === 205 || init.status === 304 ? null : text,
        init,
      );
    },
    idTokenHeader: () => headerOf(answered),
  };
}

function headerOf(tokenResponse: string): Record<string, unknown> | undefined {
  try {
    const { id_token: idToken } = JSON.parse(tokenResponse);
    return JSON.parse(Buffer.from(String(idToken).split('.')[0] ?? '', 'base64url').toString());
  } catch {
    return undefined;
  }
}

/** In the body, unless the identity provider takes it only in the header (the default of OpenID Connect Core section 9). */
function clientSecretAs(secret: string): ClientAuth {
  const [post, basic] = [ClientSecretPost(secret), ClientSecretBasic(secret)];
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    return (methods.includes('client_secret_post') ? post : basic)(server, client, body, headers);
  };
}

/** Many identity providers state the address only at their UserInfo endpoint. */
async function readProfile(
  provider: Configuration,
  accessToken: string,
  { sub, email }: IDToken,
  checks: SsoChecks,
): Promise<Record<string, unknown>> {
  if (email !== undefined || provider.serverMetadata().userinfo_endpoint === undefined) return {};
  try {
    return await fetchUserInfo(provider, accessToken, sub);
  } catch (error) {
    return checks.fail('response', `UserInfo: ${describe(error)}`, 'the claims of the person');
  }
}

interface SignedClaims {
  claims: IDToken;
  header: Record<string, unknown> | undefined;
}

/** The ID token passed all of them, but for the times of which the library looks at none. */
function passGrant({ clientId }: OidcSettings, { claims, header }: SignedClaims, checks: SsoChecks): void {
  checks.pass('response', 'code', 'code');
  checks.pass('issuer', claims.iss, claims.iss);
  checks.pass('audience', claims.aud, clientId);
  checks.pass('nonce');
  checks.pass('time', `expires ${formatSeconds(claims.exp)}`, 'in the future');
  for (const [what, seconds] of [
    ['issued', claims.iat],
    ['signed in', claims.auth_time],
  ] as const)
    if (seconds !== undefined) {
      const latest = Date.now() / 1000 + TOLERANCE_SECONDS;
      checks.require('time', seconds <= latest, `${what} ${formatSeconds(seconds)}`, 'not in the future');
    }
  checks.pass('signature', describeKey(header));
}

const formatSeconds = (seconds: unknown): string => toDate(seconds)?.toISOString() ?? String(seconds);

const describeKey = (header: Record<string, unknown> | undefined): string =>
  header ? `key ${header.kid ?? 'without id'}, ${header.alg}` : 'no ID token';

const CHECK_OF_CLAIM: Record<string, SsoCheckName> = {
  iss: 'issuer',
  aud: 'audience',
  azp: 'audience',
  nonce: 'nonce',
  exp: 'time',
  nbf: 'time',
  iat: 'time',
  sub: 'subject',
};
/** Values of which are secrets. */
const SECRET_CLAIMS = ['nonce'];

/** Finds the check that the library's error stands for, and what was seen. */
function failGrant(
  error: unknown,
  { parameters, header }: { parameters: URLSearchParams; header: Record<string, unknown> | undefined },
  checks: SsoChecks,
): never {
  const { message, code, cause } = innermost(error);
  const facts = (typeof cause === 'object' && cause !== null ? cause : {}) as {
    claim?: unknown;
    claims?: Record<string, unknown>;
    expected?: unknown;
  };
  const [, missing] = /^JWT "(\w+)" .* claim missing$/.exec(message) ?? [];
  const claim = typeof facts.claim === 'string' ? facts.claim : missing;
  if (claim !== undefined && Object.hasOwn(CHECK_OF_CLAIM, claim)) {
    const isSecret = SECRET_CLAIMS.includes(claim);
    return checks.fail(
      CHECK_OF_CLAIM[claim] ?? 'response',
      isSecret ? null : facts.claims?.[claim],
      isSecret ? null : facts.expected,
    );
  }
  if (/"iss" \(issuer\)/.test(message))
    return checks.fail('issuer', parameters.get('iss') ?? 'none', facts.expected);
  if (code === 'OAUTH_KEY_SELECTION_FAILED' || /signature verification failed/.test(message))
    return checks.failKey(describeKey(header), 'a key that the identity provider publishes');
  if (/signature|"alg"|JWS algorithm/.test(message)) return checks.fail('signature', describeKey(header));
  return checks.fail('response', describe(error));
}

interface LibraryError {
  message: string;
  code: string | undefined;
  cause: unknown;
}

/** openid-client wraps the errors of oauth4webapi, which name the claim. */
function innermost(error: unknown): LibraryError {
  let current = error;
  for (let depth = 0; depth < 5; depth += 1) {
    const cause = current instanceof Error ? current.cause : undefined;
    if (!(cause instanceof Error)) break;
    current = cause;
  }
  const { message = 'unknown', code, cause } = (current ?? {}) as Partial<Error> & { code?: unknown };
  return { message, code: typeof code === 'string' ? code : undefined, cause };
}

/** What came instead of an answer. Contains no token: only OAuth error codes, HTTP statuses and messages. */
function describe(error: unknown): string {
  const { error: oauthError, status } = error as { error?: unknown; status?: unknown };
  if (typeof oauthError === 'string') return `error ${oauthError}`;
  if (error instanceof FetchFailure)
    return error.code === 'blocked' ? error.message : `no answer (${error.code})`;
  const response = (error as { cause?: unknown }).cause;
  const httpStatus = response instanceof Response ? response.status : status;
  if (typeof httpStatus === 'number' && httpStatus !== 200) return `HTTP ${httpStatus}`;
  return innermost(error).message;
}

function isSameUrl(one: string, other: string): boolean {
  const [a, b] = [URL.parse(one), URL.parse(other)];
  return a !== null && a.href === b?.href;
}

/** Null for what is no time: providers may send any number. */
function toDate(seconds: unknown): Date | null {
  return storableTime(typeof seconds === 'number' ? seconds * 1000 : Number.NaN);
}
