import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
} from 'openid-client';
import type { BoundedFetch } from '../../platform/bounded-fetch.ts';
import type { EmailTrust, OidcProvider } from '../../platform/oauth-providers.ts';
import type { OauthClient } from './oauth-client.ts';

/** Keys and endpoints of a provider are read again after this time. */
const METADATA_LIFETIME_MS = 10 * 60_000;

export function createOidcClient(
  provider: OidcProvider,
  { fetch, redirectUri }: { fetch: BoundedFetch; redirectUri: string },
): OauthClient {
  const { issuer, clientId, clientSecret, emailTrust } = provider;
  let known: { configuration: Configuration; until: number } | undefined;

  async function discover(): Promise<Configuration> {
    if (known && known.until > Date.now()) return known.configuration;
    const url = new URL(issuer);
    const configuration = await discovery(url, clientId, {}, clientAuthentication(clientSecret), {
      // Without it, the library accepts an ID token with a wrong signature.
      execute: [enableNonRepudiationChecks, ...(url.protocol === 'http:' ? [allowInsecureRequests] : [])],
      [customFetch]: (target, { method, headers, body }) =>
        fetch(target, { method, headers, body: body as RequestInit['body'] }),
    });
    known = { configuration, until: Date.now() + METADATA_LIFETIME_MS };
    return configuration;
  }

  return {
    async authorizationUrl({ state, nonce, codeVerifier }) {
      const url = buildAuthorizationUrl(await discover(), {
        redirect_uri: redirectUri,
        scope: 'openid email profile',
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
      });
      return url.href;
    },

    async readAnswer(parameters, { state, nonce, codeVerifier }) {
      const configuration = await discover();
      const currentUrl = new URL(redirectUri);
      currentUrl.search = parameters.toString();
      const tokens = await authorizationCodeGrant(configuration, currentUrl, {
        pkceCodeVerifier: codeVerifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (!claims) throw new Error('The token response has no ID token');
      // The library checks it only beside several audiences (OpenID Connect Core section 3.1.3.7).
      if (claims.azp !== undefined && claims.azp !== clientId)
        throw new Error('The ID token was issued to another client');
      // Many providers state the address only at their UserInfo endpoint.
      const needsUserInfo =
        claims.email === undefined && configuration.serverMetadata().userinfo_endpoint !== undefined;
      const profile: Record<string, unknown> = needsUserInfo
        ? { ...(await fetchUserInfo(configuration, tokens.access_token, claims.sub)), ...claims }
        : claims;
      const email = typeof profile.email === 'string' ? profile.email.toLowerCase() : null;
      return {
        issuer: claims.iss,
        subject: claims.sub,
        email,
        isEmailVerified: email !== null && isTrusted(emailTrust, email, profile),
        name: typeof profile.name === 'string' ? profile.name : null,
      };
    },
  };
}

function isTrusted(trust: EmailTrust, email: string, claims: Record<string, unknown>): boolean {
  if (trust === 'never' || claims.email_verified !== true) return false;
  // Google manages Gmail's addresses, and those of a Workspace, whose accounts have the claim `hd`.
  return trust === 'verified' || /@(?:gmail|googlemail)\.com$/.test(email) || typeof claims.hd === 'string';
}

/** In the header, unless the provider takes it only in the body (OpenID Connect Core section 9). */
function clientAuthentication(secret: string): ReturnType<typeof ClientSecretBasic> {
  const [basic, post] = [ClientSecretBasic(secret), ClientSecretPost(secret)];
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    return (methods.includes('client_secret_basic') ? basic : post)(server, client, body, headers);
  };
}
