import type { BoundedFetch } from '../../platform/bounded-fetch.ts';
import type { OauthProvider } from '../../platform/oauth-providers.ts';
import { createGithubClient } from './github-client.ts';
import type { OauthClient } from './oauth-client.ts';
import { createOidcClient } from './oidc-client.ts';

/** @param redirectUri the callback of this provider. Each has one of its own, against mix-up (RFC 9700 section 4.4). */
export function createOauthClient(
  provider: OauthProvider,
  { fetch, redirectUri }: { fetch: BoundedFetch; redirectUri: string },
): OauthClient {
  return provider.kind === 'github'
    ? createGithubClient(provider, { fetch, redirectUri })
    : createOidcClient(provider, { fetch, redirectUri });
}
