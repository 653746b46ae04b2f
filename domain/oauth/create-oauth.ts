import type { Logger } from 'pino';
import { boundedFetch } from '../../platform/bounded-fetch.ts';
import type { Config } from '../../platform/config.ts';
import { readOauthProviders } from '../../platform/oauth-providers.ts';
import type { PeopleDependencies } from '../people/create-people.ts';
import { createOauthClient } from './create-oauth-client.ts';
import { createOauthService } from './oauth.service.ts';
import { createOauthLinkService } from './oauth-link.service.ts';

/** Sign-in by the configured public providers. */
export function createOauth(
  options: PeopleDependencies & { config: Config; publicUrl: string; logger: Logger },
) {
  const connections = readOauthProviders(options.config).map((provider) => ({
    provider,
    client: createOauthClient(provider, {
      fetch: boundedFetch,
      redirectUri: `${options.publicUrl}/api/v1/auth/oauth/${provider.id}/callback`,
    }),
  }));
  const names = new Map(connections.map(({ provider: { id, name } }) => [id, name]));
  return {
    oauth: createOauthService({ ...options, connections }),
    oauthLinks: createOauthLinkService({ ...options, names }),
  };
}
