import { LRUCache } from 'lru-cache';
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  type IDToken,
} from 'openid-client';
import { storableTime } from '../../platform/database/storable.ts';
import { FetchFailure, type GuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import type { SsoCheckName, SsoChecks } from './sso-checks.ts';

export interface OidcSettings {
  configurationId: string;
  issuer: string;
  clientId: string;
  clientSecret: string;
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
  /** @throws SsoRefusal if the identity provider cannot be reached or its metadata is wrong. */
  authorizationUrl(
    settings: OidcSettings,
    request: OidcSecrets & { isFresh: boolean },
    checks: SsoChecks,
  ): Promise<string>;
  /**
   * Exchanges the code and checks the ID token.
   *
   * @param parameters of the answer, as the identity provider sent them.
   * @throws SsoRefusal
   */
  readAnswer(
    settings: OidcSettings,
    answer: { parameters: URLSearchParams; secrets: OidcSecrets },
    checks: SsoChecks,
  ): Promise<OidcIdentity>;
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

export function createOidcClient({ fetch, redirectUri, allowHttp }: OidcClientOptions): OidcClient {
  const known = new LRUCache<string, Configuration>({
    max: MAX_CACHED_PROVIDERS,
    ttl: METADATA_LIFETIME_MS,
  });

  async function discover(settings: OidcSettings, checks: SsoChecks): Promise<Configuration> {
    const { configurationId, issuer, clientId, clientSecret } = settings;
    const key = JSON.stringify([configurationId, issuer, clientId, clientSecret]);
    const cached = known.get(key);
    if (cached) return cached;
    let found: Configuration;
    try {
      found = await discovery(new URL(issuer), clientId, {}, clientSecretAs(clientSecret), {
        // Without it, openid-client accepts an ID token with a wrong signature.
        execute: [enableNonRepudiationChecks, ...(allowHttp ? [allowInsecureRequests] : [])],
        [customFetch]: (url, request) => fetch(url, { ...request, headers: { ...request.headers } }),
        timeout: TIMEOUT_SECONDS,
      });
    } catch (error) {
      return checks.fail('provider', describe(error), 'OpenID Connect discovery');
    }
    const { issuer: stated, authorization_endpoint: endpoint } = found.serverMetadata();
    // openid-client lets multi-tenant issuers of Microsoft pass, where every tenant could name every address.
    checks.require('provider', isSameUrl(stated, issuer), stated, issuer);
    // A browser is sent there.
    const protocol = URL.parse(endpoint ?? '')?.protocol;
    checks.require(
      'provider',
      protocol === 'https:' || (allowHttp && protocol === 'http:'),
      endpoint,
      'https',
    );
    known.set(key, found);
    return found;
  }

  return {
    async authorizationUrl(settings, { state, nonce, verifier, isFresh }, checks) {
      const provider = await discover(settings, checks);
      const url = buildAuthorizationUrl(provider, {
        redirect_uri: redirectUri,
        scope: 'openid email profile',
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(isFresh ? { max_age: '0', prompt: 'login' } : {}),
      });
      return url.href;
    },

    async readAnswer(settings, { parameters, secrets }, checks) {
      const provider = await discover(settings, checks);
      const currentUrl = new URL(redirectUri);
      currentUrl.search = parameters.toString();
      let tokens: Awaited<ReturnType<typeof authorizationCodeGrant>>;
      try {
        tokens = await authorizationCodeGrant(provider, currentUrl, {
          pkceCodeVerifier: secrets.verifier,
          expectedState: secrets.state,
          expectedNonce: secrets.nonce,
          idTokenExpected: true,
        });
      } catch (error) {
        return failGrant(error, checks);
      }
      const claims = tokens.claims();
      if (!claims) return checks.fail('response', 'no ID token', 'an ID token');
      passGrant(settings, claims, checks);
      const profile = { ...(await readProfile(provider, tokens.access_token, claims, checks)), ...claims };
      return {
        issuer: claims.iss,
        subject: claims.sub,
        email: profile.email,
        emailVerified: profile.email_verified,
        name: profile.name,
        authenticatedAt: toDate(claims.auth_time),
      };
    },
  };
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

/** The ID token passed all of them. */
function passGrant({ clientId }: OidcSettings, claims: IDToken, checks: SsoChecks): void {
  checks.pass('response', 'code', 'code');
  checks.pass('issuer', claims.iss, claims.iss);
  checks.pass('audience', claims.aud, clientId);
  checks.pass('nonce');
  checks.pass('time', toDate(claims.exp)?.toISOString(), 'in the future');
  checks.pass('signature');
}

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

/** Finds the check that the library's error stands for. */
function failGrant(error: unknown, checks: SsoChecks): never {
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
  if (/"iss" \(issuer\) (missing|response)|"iss" \(issuer\) response/.test(message))
    return checks.fail('issuer', message, facts.expected);
  if (/signature|verification key|"alg"|JWS algorithm/.test(message))
    return checks.fail('signature', message);
  return checks.fail('response', describe(error) + (code === undefined ? '' : ` (${code})`));
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

/** Contains no token: only messages, OAuth error codes and HTTP statuses. */
function describe(error: unknown): string {
  const { error: oauthError, status } = error as { error?: unknown; status?: unknown };
  if (typeof oauthError === 'string') return `error ${oauthError}`;
  if (error instanceof FetchFailure) return error.message;
  const inner = innermost(error);
  const response = (error as { cause?: unknown }).cause;
  const httpStatus = response instanceof Response ? ` (HTTP ${response.status})` : '';
  return `${inner.message}${httpStatus}${typeof status === 'number' ? ` (HTTP ${status})` : ''}`;
}

function isSameUrl(one: string, other: string): boolean {
  const [a, b] = [URL.parse(one), URL.parse(other)];
  return a !== null && a.href === b?.href;
}

/** Null for what is no time: providers may send any number. */
function toDate(seconds: unknown): Date | null {
  return storableTime(typeof seconds === 'number' ? seconds * 1000 : Number.NaN);
}
