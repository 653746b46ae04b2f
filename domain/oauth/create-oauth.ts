import type { Logger } from 'pino';
import { boundedFetch } from '../../platform/bounded-fetch.ts';
import type { Config } from '../../platform/config.ts';
import { readOauthProviders } from '../../platform/oauth-providers.ts';
import { createOidcClient } from '../../platform/oidc-client.ts';
import type { PeopleDependencies } from '../people/create-people.ts';
import { createGithubClient } from './github-client.ts';
import { createOauthService } from './oauth.service.ts';
import { createOpenIdClient } from './oauth-client.ts';
import { createOauthLinkService } from './oauth-link.service.ts';

/** Sign-in by the configured public providers. */
export function createOauth(
  options: PeopleDependencies & { config: Config; publicUrl: string; logger: Logger },
) {
  const oidc = createOidcClient({
    fetch: boundedFetch,
    allowHttp: options.config.NODE_ENV !== 'production',
  });
  const connections = readOauthProviders(options.config).map((provider) => {
    // Each provider has its own callback, against mix-up attacks (RFC 9700 section 4.4).
    const redirectUri = `${options.publicUrl}/api/v1/auth/oauth/${provider.id}/callback`;
    const client =
      provider.kind === 'github'
        ? createGithubClient(provider, { fetch: boundedFetch, redirectUri })
        : createOpenIdClient(provider, { oidc, redirectUri });
    return { provider, client };
  });
  const names = new Map(connections.map(({ provider: { id, name } }) => [id, name]));
  return {
    oauth: createOauthService({ ...options, connections }),
    oauthLinks: createOauthLinkService({ ...options, names }),
  };
}
