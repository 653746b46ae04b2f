import { sql } from 'kysely';
import type { Logger } from 'pino';
import { networkHolder } from '../../platform/concurrency/fair-share.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { addressNotAllowed, isAddressAllowed } from '../identity/allowed-addresses.ts';
import {
  type Authenticator,
  type Credentials,
  findSuspension,
  type OrganizationStatus,
  organizationDeleted,
  unauthenticated,
} from '../identity/authentication.ts';
import { CONNECTION_PERMISSIONS, type Permission } from '../identity/permissions.ts';
import type { SessionFactor, SessionMethod } from '../identity/person.ts';
import { type MemberRole, ROLE_PERMISSIONS } from '../identity/roles.ts';
import { createUseRecorder, toIdParameter, toTenantScope } from '../identity/tenant-credential.ts';
import { COMMAND_LINE_CLIENT_ID } from './command-line-client.ts';
import { findConnectionViolation } from './connection-policies.ts';
import { hashConnectionToken, isConnectionToken } from './connection-token.ts';

/** A row of the SQL function `find_connection`. */
interface FoundConnection {
  connection_id: string;
  org_id: string;
  org_status: OrganizationStatus;
  env_id: string | null;
  env_status: 'active' | 'suspended' | null;
  env_bound: boolean;
  inbox_id: string | null;
  inbox_status: 'active' | 'suspended' | null;
  permissions: Permission[];
  user_id: string;
  client_id: string;
  role: MemberRole;
  method: SessionMethod;
  factors: SessionFactor[];
  authenticated_at: Date;
  active_sso: boolean;
  require_mfa: boolean;
  enforce_sso: boolean;
  sso_satisfies_mfa: boolean;
  allowed_cidrs: string[];
  expires_at: Date;
  last_used_at: Date | null;
}

type ConnectionRow = NonNullable<Awaited<ReturnType<typeof findConnection>>>;

/**
 * Authenticates the access tokens of connections. A call has the permissions that the person granted and has today, under the
 * present policies of the organization.
 *
 * @param resource where the call is made: every connection works at `/mcp`, that of the CLI also at `/api/v1`.
 */
export function createConnectionAuthenticator({
  database,
  logger,
  resource,
}: {
  database: Database;
  logger: Logger;
  resource: 'mcp' | 'api';
}): Authenticator {
  const recordUpdate = createUseRecorder(logger, 'a connection');

  /** At most once a minute for each connection. */
  function recordUse({ connectionId, organizationId, isRecentlyUsed }: ConnectionRow): void {
    if (isRecentlyUsed) return;
    recordUpdate(connectionId, () =>
      database.transaction({ organizationId }, ({ db }) =>
        db
          .updateTable('connections')
          .set({ last_used_at: sql<Date>`now()` })
          .where('id', '=', connectionId)
          .execute(),
      ),
    );
  }

  return {
    accepts: isConnectionToken,
    async authenticate(credentials) {
      const { token, environmentId, organizationId, ip } = credentials;
      const row = isConnectionToken(token)
        ? await database.inShareOf(networkHolder(ip), (db) => findConnection(db, credentials))
        : undefined;
      if (!row || row.isExpired) throw unauthenticated();
      if (resource === 'api' && row.clientId !== COMMAND_LINE_CLIENT_ID) throw unauthenticated();
      if (organizationId !== undefined && organizationId !== row.organizationId)
        throw notFound('organization', organizationId);
      if (!isAddressAllowed(ip, row.allowedCidrs)) throw addressNotAllowed('organization');
      if (row.organizationStatus === 'deleted') throw organizationDeleted(row.organizationId);
      const violation = findConnectionViolation(row, row);
      if (violation) throw violation;
      if (row.environmentId === null) throw notFound('environment', environmentId ?? 'production');
      recordUse(row);
      return {
        scope: {
          ...toTenantScope(row, row.environmentId, credentials),
          permissions: new Set(permissionsOf(row)),
          actor: { kind: 'connection', id: row.connectionId },
          connection: { userId: row.userId },
        },
        suspension: findSuspension(row),
        expiresAt: row.expiresAt,
      };
    },
  };
}

const permissionsOf = ({ permissions, role }: ConnectionRow): Permission[] =>
  CONNECTION_PERMISSIONS.filter(
    (name) => permissions.includes(name) && ROLE_PERMISSIONS[role].includes(name),
  );

function findConnection(db: Db, { token, environmentId, resourceId }: Credentials) {
  const requested = toIdParameter('environment', environmentId);
  const found = sql<FoundConnection>`find_connection(${hashConnectionToken(token)}, ${requested}, ${resourceId ?? null})`;
  return db
    .selectFrom(found.as('found'))
    .select([
      'connection_id as connectionId',
      'org_id as organizationId',
      'org_status as organizationStatus',
      'env_id as environmentId',
      'env_status as environmentStatus',
      'env_bound as environmentBound',
      'inbox_id as inboxId',
      'inbox_status as inboxStatus',
      'permissions',
      'user_id as userId',
      'client_id as clientId',
      'role',
      'method',
      'factors',
      'authenticated_at as authenticatedAt',
      'active_sso as isActiveSso',
      'require_mfa as requireMfa',
      'enforce_sso as enforceSso',
      'sso_satisfies_mfa as ssoSatisfiesMfa',
      'allowed_cidrs as allowedCidrs',
      'expires_at as expiresAt',
      sql<boolean>`expires_at <= now()`.as('isExpired'),
      sql<boolean | null>`last_used_at > now() - interval '1 minute'`.as('isRecentlyUsed'),
    ])
    .executeTakeFirst();
}
