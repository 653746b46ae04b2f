import { sql } from '@mikro-orm/core';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { isId } from '../../platform/ids.ts';
import type { Permission } from '../identity/permissions.ts';
import type { Scope } from '../identity/scope.ts';
import { ApiKeyEntity } from './api-key.entity.ts';
import { hashApiKeyToken, isApiKeyToken } from './api-key-token.ts';

export interface Credentials {
  token: string;
  /** The environment requested with `x-env-id`; only an organization-wide key may select one. */
  environmentId: string | undefined;
  requestId: string;
}

export interface Authentication {
  scope: Scope;
  /** The error for changes while the organization or environment is suspended; reads are allowed. */
  suspension: AppError | undefined;
}

export interface AuthenticationService {
  /**
   * Resolves a token to its scope.
   *
   * @throws AppError `unauthenticated`, without distinguishing unknown, expired and revoked keys; `not_found` for an
   * environment outside its scope.
   */
  authenticate(credentials: Credentials): Promise<Authentication>;
}

interface KeyRow {
  keyId: string;
  organizationId: string;
  organizationStatus: 'active' | 'suspended';
  environmentId: string | null;
  environmentStatus: 'active' | 'suspended' | null;
  environmentBound: boolean;
  inboxId: string | null;
  permissions: Permission[];
  isExpired: boolean | null;
  isRecentlyUsed: boolean | null;
}

/** Checks expiry with the clock of the database, so all processes agree. */
export function createAuthenticationService({
  database,
  logger,
}: {
  database: Database;
  logger: Logger;
}): AuthenticationService {
  const pendingUpdates = new Set<string>();

  /** Runs asynchronously, at most once a minute per key. A lost update only makes `last_used_at` less precise. */
  function recordUse(row: KeyRow): void {
    if (row.isRecentlyUsed || pendingUpdates.has(row.keyId)) return;
    pendingUpdates.add(row.keyId);
    database
      .transaction({ organizationId: row.organizationId }, ({ em }) =>
        em.nativeUpdate(ApiKeyEntity, { id: row.keyId }, { lastUsedAt: new Date() }),
      )
      .catch((error: unknown) => logger.warn({ err: error }, 'could not record the last use of an API key'))
      .finally(() => pendingUpdates.delete(row.keyId));
  }

  return {
    async authenticate({ token, environmentId, requestId }) {
      const row = isApiKeyToken(token) ? await findKey(database, token, environmentId) : undefined;
      if (!row || row.isExpired) throw unauthenticated();
      if (row.environmentId === null) throw notFound('environment', environmentId ?? 'production');
      recordUse(row);
      return {
        scope: {
          organizationId: row.organizationId,
          environmentId: row.environmentId,
          environmentBound: row.environmentBound,
          ...(row.inboxId === null ? {} : { inboxId: row.inboxId }),
          permissions: new Set(row.permissions),
          actor: { kind: 'api_key', id: row.keyId },
          requestId,
        },
        suspension: findSuspension(row),
      };
    },
  };
}

async function findKey(
  database: Database,
  token: string,
  environmentId: string | undefined,
): Promise<KeyRow | undefined> {
  // Text that is not an id matches no environment, and may contain characters PostgreSQL cannot store.
  const requested =
    environmentId === undefined ? null : isId('environment', environmentId) ? environmentId : '';
  const [row] = await database.query<KeyRow>(sql`select key_id as "keyId", org_id as "organizationId",
    org_status as "organizationStatus", env_id as "environmentId", env_status as "environmentStatus",
    env_bound as "environmentBound", inbox_id as "inboxId", permissions, expires_at <= now() as "isExpired",
    last_used_at > now() - interval '1 minute' as "isRecentlyUsed"
    from find_api_key(${hashApiKeyToken(token)}, ${requested})`);
  return row;
}

function findSuspension({ organizationStatus, environmentStatus }: KeyRow): AppError | undefined {
  if (organizationStatus === 'suspended') {
    return new AppError('organization_suspended', {
      detail: 'The organization is suspended: it can read but not change anything.',
      fix: 'Ask an owner of the organization to contact support.',
    });
  }
  if (environmentStatus === 'suspended') {
    return new AppError('environment_suspended', {
      detail: 'The environment is suspended: it can be read but not changed.',
      fix: 'Use another environment, or ask an owner of the organization to contact support.',
    });
  }
  return undefined;
}

export function unauthenticated(): AppError {
  return new AppError('unauthenticated', {
    detail: 'The request has no valid API key.',
    fix: 'Send the header "Authorization: Bearer <API key>" with a key that is not expired or revoked.',
    headers: { 'www-authenticate': 'Bearer' },
  });
}
