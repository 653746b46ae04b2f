import { createPrivateKey } from 'node:crypto';
import { type Adapter, type Client, type Context, errors, interactionPolicy, Provider } from 'oidc-provider';
import { createSigner, randomBase62, type Signer } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { GuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import { CONNECTION_PERMISSIONS } from '../identity/permissions.ts';
import { createClientAdapter } from './client-adapter.ts';
import { COMMAND_LINE_CLIENT, resourcesOf } from './command-line-client.ts';
import { createAccessToken, createRefreshToken, refreshTokenOf } from './connection-token.ts';
import { endConnectionOfClient } from './end-connections.ts';
import { createGrantAdapter } from './grant-adapter.ts';
import { createDocumentFetch } from './metadata-document.ts';
import { RegistrationLimitError } from './registration-limit.ts';
import { createRequestAdapter } from './request-adapter.ts';
import { createTokenAdapter, type IssuedKind } from './token-adapter.ts';

/** Paths of the authorization server, relative to the issuer. The page of consent is this service's own. */
export const AUTHORIZATION_PATHS = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  registration: '/oauth/register',
  revocation: '/oauth/revoke',
  consent: '/connect',
} as const;

const ACCESS_TOKEN_SECONDS = 3_600;
const CODE_SECONDS = 60;
/** Enough to sign in with a second factor, or by single sign-on. */
const INTERACTION_SECONDS = 1_800;

export interface AuthorizationServerOptions {
  database: Database;
  /** `SIGNING_KEY`. */
  signingKey: string;
  /** Without a slash at the end. */
  issuer: string;
  guardedFetch: GuardedFetch;
}

/** A request that is passed on to the library. */
declare module 'node:http' {
  interface IncomingMessage {
    /** Address of the client, as the service sees it. */
    clientIp?: string;
    /** Why the library could not answer: an error of the service, not of the client. */
    failure?: Error;
  }
}

/**
 * The authorization server (OAuth 2.1) for clients of `{issuer}/mcp` and for the CLI, by `oidc-provider`: codes with PKCE alone,
 * opaque tokens, no OpenID Connect. It keeps no session: each request for authorization asks the person.
 */
export function createAuthorizationServer(options: AuthorizationServerOptions): Provider {
  const { issuer } = options;
  const rotation = createSigner(options.signingKey, 'connection refresh tokens');
  const provider = new Provider(issuer, {
    adapter: createAdapters(options, {
      findSuccessors: (value) => rotation.signatures(value).map(refreshTokenOf),
    }),
    ...keysOf(options.signingKey),
    ...clientSettings(options),
    features: featuresOf(issuer),
    interactions: {
      url: (_context: Context, { uid }: { uid: string }) => `${AUTHORIZATION_PATHS.consent}/${uid}`,
      policy: [consentPrompt()],
    },
    findAccount: async (_context: Context, accountId: string) => ({
      accountId,
      claims: async () => ({ sub: accountId }),
    }),
    loadExistingGrant: async ({ oidc }: Context) => {
      const grantId = oidc.result?.consent?.grantId;
      return grantId === undefined ? undefined : oidc.provider.Grant.find(grantId);
    },
    renderError: (context: Context, out: object) => {
      context.type = 'application/json';
      context.body = out;
    },
    routes: { ...AUTHORIZATION_PATHS },
    scopes: [],
    clients: [COMMAND_LINE_CLIENT],
    responseTypes: ['code'],
    pkce: { required: () => true },
    allowOmittingSingleRegisteredRedirectUri: false,
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    expiresWithSession: async () => false,
    ttl: lifetimes(),
  });
  // Behind a proxy the request says neither the scheme nor the host that clients see; the caller sets both.
  provider.proxy = true;
  provider.on('server_error', ({ req }, error) => {
    req.failure = error;
  });
  provider.on('registration_create.error', (context, error) => {
    if (error instanceof RegistrationLimitError) context.set('retry-after', String(error.waitSeconds));
  });
  replaceTokenValues(provider, rotation);
  return provider;
}

/**
 * Gives tokens their prefixes, and a rotation that is repeated, because its answer was lost, the same token again. Needed until
 * the library lets a provider choose the values of tokens.
 */
function replaceTokenValues(provider: Provider, rotation: Signer): void {
  provider.AccessToken.prototype.generateTokenId = function (this: { format?: string }) {
    this.format = 'opaque';
    return createAccessToken();
  };
  provider.RefreshToken.prototype.generateTokenId = () => {
    const rotated = Provider.ctx?.oidc.entities.RotatedRefreshToken?.jti;
    return rotated === undefined ? createRefreshToken() : refreshTokenOf(rotation.sign(rotated));
  };
}

const TOKEN_KINDS: Record<string, IssuedKind> = {
  AuthorizationCode: 'authorization_code',
  AccessToken: 'access_token',
  RefreshToken: 'refresh_token',
};

/** Models that are not used, among them sessions, which would let a person consent without signing in again. */
const NOTHING: Adapter = {
  upsert: async () => undefined,
  find: async () => undefined,
  findByUid: async () => undefined,
  findByUserCode: async () => undefined,
  consume: async () => undefined,
  destroy: async () => undefined,
  revokeByGrantId: async () => undefined,
};

function createAdapters(
  { database, issuer }: AuthorizationServerOptions,
  { findSuccessors }: { findSuccessors(value: string): string[] },
): (model: string) => Adapter {
  const findAddress = () => Provider.ctx?.req.clientIp ?? '';
  const end = (connectionId: string, reason: 'client' | 'reuse') =>
    database.peopleTransaction(({ db }) =>
      endConnectionOfClient(db, connectionId, { reason, ip: Provider.ctx?.req.clientIp }),
    );
  const endReused = (connectionId: string) => end(connectionId, 'reuse');
  return (model) => {
    const kind = TOKEN_KINDS[model];
    if (kind) return createTokenAdapter(kind, { database, findSuccessors, endReused });
    if (model === 'Interaction') return { ...NOTHING, ...createRequestAdapter({ database, findAddress }) };
    if (model === 'Client') return { ...NOTHING, ...createClientAdapter({ database, findAddress }) };
    if (model !== 'Grant') return NOTHING;
    const endGrant = (id: string) => end(id, Provider.ctx?.oidc.route === 'revocation' ? 'client' : 'reuse');
    return { ...NOTHING, ...createGrantAdapter({ database, issuer, end: endGrant }) };
  };
}

/**
 * Derived from `SIGNING_KEY`, so that they persist and are the same in all processes. The library demands a key for signatures
 * of tokens, but opaque tokens have none.
 */
function keysOf(signingKey: string) {
  const seed = createSigner(signingKey, 'authorization server').sign('Ed25519');
  // PKCS #8 of an Ed25519 key (RFC 8410 section 7) is this beginning and 32 bytes.
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  const jwk = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ format: 'jwk' });
  const cookieKeys = createSigner(signingKey, 'authorization server cookies').signatures('');
  const cookie = { httpOnly: true, sameSite: 'lax', signed: true };
  return {
    jwks: { keys: [{ ...jwk, use: 'sig', alg: 'EdDSA' }] },
    cookies: {
      keys: cookieKeys.map((key) => key.toString('base64url')),
      names: { session: 'connect_session', interaction: 'connect', resume: 'connect_resume' },
      long: cookie,
      short: cookie,
    },
  };
}

function clientSettings({ guardedFetch }: AuthorizationServerOptions) {
  return {
    clientAuthMethods: ['none'],
    clientDefaults: {
      token_endpoint_auth_method: 'none',
      id_token_signed_response_alg: 'EdDSA',
      response_modes: ['query'],
    },
    // Programs in a browser reach the token endpoint if their redirect address has the same origin.
    clientBasedCORS: (_context: Context, origin: string, { redirectUris }: { redirectUris: string[] }) =>
      redirectUris.some((uri) => URL.parse(uri)?.origin === origin),
    fetch: createDocumentFetch(guardedFetch, () => Provider.ctx?.req.clientIp ?? ''),
  };
}

const OFF = { enabled: false };

const featuresOf = (issuer: string) => ({
  devInteractions: OFF,
  dPoP: OFF,
  pushedAuthorizationRequests: OFF,
  rpInitiatedLogout: OFF,
  userinfo: OFF,
  // Clients are public, so the client id alone identifies the client that revokes its token (RFC 7009 section 2.1).
  revocation: {
    enabled: true,
    allowedPolicy: async (_context: Context, client: Client, token: { clientId: string }) =>
      token.clientId === client.clientId,
  },
  registration: {
    enabled: true,
    idFactory: () => `app_${randomBase62(24)}`,
    // Registrations cannot be read or changed: a client registers again.
    issueRegistrationAccessToken: false,
  },
  clientIdMetadataDocument: {
    enabled: true,
    ack: 'draft-02',
    allowFetch: async () => true,
    allowClient: async () => true,
    cacheDuration: { min: 300, max: 300 },
  },
  resourceIndicators: {
    enabled: true,
    defaultResource: async () => `${issuer}/mcp`,
    useGrantedResource: async () => true,
    getResourceServerInfo: async (_context: Context, indicator: string, { clientId }: Client) => {
      if (!resourcesOf(issuer, clientId).includes(indicator)) throw new errors.InvalidTarget();
      return {
        scope: CONNECTION_PERMISSIONS.join(' '),
        audience: indicator,
        accessTokenFormat: 'opaque',
      };
    },
  },
});

const consentPrompt = () =>
  new interactionPolicy.Prompt(
    { name: 'consent', requestable: true },
    new interactionPolicy.Check(
      'consent_missing',
      'The person must consent on a page of this service.',
      'consent_required',
      ({ oidc }) => oidc.result?.consent?.grantId === undefined,
    ),
  );

/** In seconds. Nothing outlives the connection. */
function lifetimes() {
  const rest = ({ oidc }: Context): number =>
    Math.max(1, (oidc.entities.Grant?.exp ?? 0) - Math.floor(Date.now() / 1_000));
  return {
    AccessToken: (context: Context) => Math.min(ACCESS_TOKEN_SECONDS, rest(context)),
    AuthorizationCode: CODE_SECONDS,
    RefreshToken: rest,
    Interaction: INTERACTION_SECONDS,
    Session: INTERACTION_SECONDS,
    Grant: INTERACTION_SECONDS,
    IdToken: INTERACTION_SECONDS,
  };
}
