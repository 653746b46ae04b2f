import type { ClientMetadata } from './client-metadata.ts';

/** The id of the CLI (`clients/cli`), which every installation knows without a registration. */
export const COMMAND_LINE_CLIENT_ID = 'agent-email-cli';

/** Listens on any port of these addresses (RFC 8252 section 7.3). */
const REDIRECT_URIS = ['http://127.0.0.1/callback', 'http://[::1]/callback'];

export const COMMAND_LINE_CLIENT: ClientMetadata & { client_id: string } = {
  client_id: COMMAND_LINE_CLIENT_ID,
  client_name: 'Agent Email CLI',
  redirect_uris: REDIRECT_URIS,
  application_type: 'native',
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  response_modes: ['query'],
  token_endpoint_auth_method: 'none',
};

/** The resources (RFC 8707) that a client may ask for. Tokens of the CLI work at both of its resources, others at `/mcp` alone. */
export const resourcesOf = (issuer: string, clientId: string): string[] => [
  `${issuer}/mcp`,
  ...(clientId === COMMAND_LINE_CLIENT_ID ? [`${issuer}/api/v1`] : []),
];
