import type { Config } from '../../platform/config.ts';
import type { ServiceProviderUrls } from './sso.schemas.ts';

/** Addresses of this service that administrators register at their identity provider. */
export function serviceProviderUrls({ PUBLIC_URL }: Pick<Config, 'PUBLIC_URL'>): ServiceProviderUrls {
  const base = `${PUBLIC_URL.replace(/\/+$/, '')}/api/v1/auth/sso`;
  return {
    redirectUri: `${base}/oidc/callback`,
    entityId: (id) => `${base}/saml/${id}`,
    acsUrl: (id) => `${base}/saml/${id}/acs`,
    metadataUrl: (organizationId, configurationId) =>
      `${base}/saml/metadata/${organizationId}?configuration=${configurationId}`,
  };
}
