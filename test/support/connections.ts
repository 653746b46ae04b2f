import { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { sql } from 'kysely';
import { runToolCall } from '../../api/plugins/tool-calls.ts';
import { createAccessToken, hashConnectionToken } from '../../domain/connections/connection-token.ts';
import { CONNECTION_PERMISSIONS, type Permission } from '../../domain/identity/permissions.ts';
import type { Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';

export interface NewTestConnection {
  organizationId: string;
  /** A member. */
  userId: string;
  environmentId?: string | undefined;
  inboxId?: string | undefined;
  permissions?: readonly Permission[];
  /** Default: an MCP host. */
  clientId?: string;
}

/** Connects a client without the page of consent. @param worker connected as a worker. */
export async function createConnection(
  worker: Database,
  connection: NewTestConnection,
): Promise<{ connectionId: string; token: string }> {
  const { organizationId, userId, environmentId, inboxId, permissions = CONNECTION_PERMISSIONS } = connection;
  const { clientId = 'https://host.example/client.json' } = connection;
  const connectionId = newId('connection');
  const token = createAccessToken();
  // In one statement: the sweep of another test ends a connection that has no token.
  await sql`with made as (
      insert into connections (id, org_id, env_id, inbox_id, user_id, client_id, client_name, redirect_to, permissions,
        method, factors, authenticated_at, expires_at)
      values (${connectionId}, ${organizationId}, ${environmentId ?? null}, ${inboxId ?? null}, ${userId},
        ${clientId}, 'Test host', 'https://host.example', ${permissions}, 'password', '{totp}', now(),
        now() + interval '30 days')
      returning id)
    insert into connection_tokens (token_hash, kind, connection_id, payload, expires_at)
    select ${hashConnectionToken(token)}, 'access_token', id, '{}', now() + interval '1 hour' from made`.execute(
    worker.db,
  );
  return { connectionId, token };
}

/** Runs requests to operations as tools of `/mcp` make them: there a connection is a credential. */
export function asToolCall<Result>(work: () => Promise<Result>): Promise<Result> {
  const request = { id: newId('request'), raw: { socket: new Socket() } } as unknown as FastifyRequest;
  return runToolCall({ request, signal: new AbortController().signal }, work);
}
