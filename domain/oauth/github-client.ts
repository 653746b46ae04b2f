import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretPost,
  Configuration,
  calculatePKCECodeChallenge,
  customFetch,
} from 'openid-client';
import type { BoundedFetch } from '../../platform/bounded-fetch.ts';
import type { GithubProvider } from '../../platform/oauth-providers.ts';
import type { OauthClient } from './oauth-client.ts';

/** GitHub has no ID token: the owner of the access token has signed in. */
export function createGithubClient(
  { url, apiUrl, clientId, clientSecret }: GithubProvider,
  { fetch, redirectUri }: { fetch: BoundedFetch; redirectUri: string },
): OauthClient {
  const issuer = `${url}/login/oauth`;
  const configuration = new Configuration(
    {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/access_token`,
    },
    clientId,
    {},
    ClientSecretPost(clientSecret),
  );
  configuration[customFetch] = fetch;
  if (url.startsWith('http:')) allowInsecureRequests(configuration);

  async function get(path: string, accessToken: string): Promise<unknown> {
    const response = await fetch(`${apiUrl}${path}`, {
      headers: {
        authorization: `Bearer ${accessToken}`,
        accept: 'application/vnd.github+json',
        'user-agent': 'agent-email-service',
      },
    });
    if (response.status !== 200) throw new Error(`GitHub answered ${response.status} to ${path}`);
    return response.json();
  }

  return {
    async authorizationUrl({ state, codeVerifier }) {
      const target = buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: 'read:user user:email',
        state,
        code_challenge: await calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
      });
      return target.href;
    },

    async readAnswer(parameters, { state, codeVerifier }) {
      const currentUrl = new URL(redirectUri);
      currentUrl.search = parameters.toString();
      const { access_token: accessToken } = await authorizationCodeGrant(configuration, currentUrl, {
        pkceCodeVerifier: codeVerifier,
        expectedState: state,
      });
      const user = (await get('/user', accessToken)) as { id?: unknown; name?: unknown } | null;
      // A user name can change and be taken by another user; the number stays.
      if (!Number.isSafeInteger(user?.id)) throw new Error('GitHub returned no user');
      const email = findPrimaryEmail(await get('/user/emails', accessToken));
      return {
        issuer,
        subject: String(user?.id),
        email,
        isEmailVerified: email !== null,
        name: typeof user?.name === 'string' ? user.name : null,
      };
    },
  };
}

/** The verified primary address, in lower case. */
function findPrimaryEmail(emails: unknown): string | null {
  if (!Array.isArray(emails)) return null;
  const primary = emails.find(
    (entry: { primary?: unknown; verified?: unknown } | null) =>
      entry?.primary === true && entry.verified === true,
  ) as { email?: unknown } | undefined;
  return typeof primary?.email === 'string' ? primary.email.toLowerCase() : null;
}
