import type { Database } from '../../platform/database/database.ts';
import type { GuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import { createAuthorizationServer } from './authorization-server.ts';
import { createConnectionService } from './connection.service.ts';
import { createConsentService } from './consent.service.ts';

/** Access of MCP hosts and of the CLI, which people grant by signing in. */
export function createConnections(options: {
  database: Database;
  signingKey: string;
  publicUrl: string;
  guardedFetch: GuardedFetch;
}) {
  return {
    connections: createConnectionService(options),
    consents: createConsentService(options),
    authorizationServer: createAuthorizationServer({ ...options, issuer: options.publicUrl }),
  };
}
