import { AUTHORIZATION_PATHS } from '../../domain/connections/authorization-server.ts';
import { CONNECTION_PERMISSIONS } from '../../domain/identity/permissions.ts';

/** What the resource `/mcp` says about itself (RFC 9728). */
export const resourceMetadata = (issuer: string) => ({
  resource: `${issuer}/mcp`,
  authorization_servers: [issuer],
  scopes_supported: CONNECTION_PERMISSIONS,
  bearer_methods_supported: ['header'],
  resource_name: 'Agent Email Service',
});

/**
 * What the authorization server says about itself (RFC 8414). Made here, because the library's document also lists what
 * OpenID Connect requires.
 */
export const serverMetadata = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}${AUTHORIZATION_PATHS.authorization}`,
  token_endpoint: `${issuer}${AUTHORIZATION_PATHS.token}`,
  registration_endpoint: `${issuer}${AUTHORIZATION_PATHS.registration}`,
  revocation_endpoint: `${issuer}${AUTHORIZATION_PATHS.revocation}`,
  scopes_supported: CONNECTION_PERMISSIONS,
  response_types_supported: ['code'],
  response_modes_supported: ['query'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_methods_supported: ['none'],
  revocation_endpoint_auth_methods_supported: ['none'],
  code_challenge_methods_supported: ['S256'],
  client_id_metadata_document_supported: true,
  authorization_response_iss_parameter_supported: true,
  protected_resources: [`${issuer}/mcp`],
});
