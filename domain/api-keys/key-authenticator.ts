import { sql } from 'kysely';
import type { Logger } from 'pino';
import { compileOnce } from '../../platform/database/compile-once.ts';
import type { Database } from '../../platform/database/database.ts';
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
import type { Permission } from '../identity/permissions.ts';
import { createUseRecorder, toIdParameter, toTenantScope } from '../identity/tenant-credential.ts';
import { hashApiKeyToken, isApiKeyToken } from './api-key-token.ts';

/** What `find_api_key` returns. */
interface FoundKey {
  key_id: string;
  org_id: string;
  org_status: OrganizationStatus;
  env_id: string | null;
  env_status: 'active' | 'suspended' | null;
  env_bound: boolean;
  inbox_id: string | null;
  inbox_status: 'active' | 'suspended' | null;
  permissions: Permission[];
  allowed_cidrs: string[];
  organization_cidrs: string[];
  expires_at: Date | null;
  /** Whether the presented token is the one before the last rotation. */
  is_previous: boolean;
}

type KeyRow = NonNullable<Awaited<ReturnType<typeof findKey>>>;

/**
 * Authenticates API keys. Checks expiry with the clock of the database, so all processes agree. The token before a rotation
 * cannot manage keys, so that a leaked token cannot rotate the key again and take it over.
 */
export function createKeyAuthenticator({
  database,
  logger,
}: {
  database: Database;
  logger: Logger;
}): Authenticator {
  const recordUpdate = createUseRecorder(logger, 'an API key');

  /** At most once a minute for each token. */
  function recordUse(row: KeyRow, ip: string): void {
    if (row.isRecentlyUsed) return;
    recordUpdate(row.isPrevious ? `${row.keyId}/previous` : row.keyId, () =>
      database.transaction({ organizationId: row.organizationId }, ({ db }) =>
        db
          .updateTable('api_keys')
          .set(
            row.isPrevious
              ? { previous_last_used_at: new Date() }
              : { last_used_at: new Date(), last_used_from: ip },
          )
          .where('id', '=', row.keyId)
          .execute(),
      ),
    );
  }

  return {
    accepts: isApiKeyToken,
    async authenticate(credentials) {
      const { token, environmentId, organizationId, ip } = credentials;
      const row = isApiKeyToken(token) ? await findKey(database, credentials) : undefined;
      if (!row || row.isExpired) throw unauthenticated();
      if (organizationId !== undefined && organizationId !== row.organizationId)
        throw notFound('organization', organizationId);
      if (!isAddressAllowed(ip, row.allowedCidrs)) throw addressNotAllowed('key');
      if (!isAddressAllowed(ip, row.organizationCidrs)) throw addressNotAllowed('organization');
      if (row.organizationStatus === 'deleted') throw organizationDeleted(row.organizationId);
      if (row.environmentId === null) throw notFound('environment', environmentId ?? 'production');
      recordUse(row, ip);
      return {
        scope: {
          ...toTenantScope(row, row.environmentId, credentials),
          permissions: new Set(row.permissions.filter((name) => !row.isPrevious || name !== 'keys:manage')),
          actor: { kind: 'api_key', id: row.keyId },
        },
        suspension: findSuspension(row),
        expiresAt: row.expiresAt,
      };
    },
  };
}

async function findKey(database: Database, { token, environmentId, resourceId }: Credentials) {
  const [key] = await selectKey(database.db, {
    tokenHash: hashApiKeyToken(token),
    environmentId: toIdParameter('environment', environmentId),
    resourceId: resourceId ?? null,
  });
  return key;
}

interface KeyQuery {
  tokenHash: Buffer;
  environmentId: string | null;
  resourceId: string | null;
}

const selectKey = compileOnce((db, { tokenHash, environmentId, resourceId }: KeyQuery) => {
  const found = sql<FoundKey>`find_api_key(${tokenHash}, ${environmentId}, ${resourceId})`;
  return db
    .selectFrom(found.as('found'))
    .select([
      'key_id as keyId',
      'org_id as organizationId',
      'org_status as organizationStatus',
      'env_id as environmentId',
      'env_status as environmentStatus',
      'env_bound as environmentBound',
      'inbox_id as inboxId',
      'inbox_status as inboxStatus',
      'permissions',
      'allowed_cidrs as allowedCidrs',
      'organization_cidrs as organizationCidrs',
      'expires_at as expiresAt',
      sql<boolean | null>`expires_at <= now()`.as('isExpired'),
      sql<boolean | null>`last_used_at > now() - interval '1 minute'`.as('isRecentlyUsed'),
      'is_previous as isPrevious',
    ]);
});
