import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { type Holder, networkHolder, organizationHolder } from '../../platform/concurrency/fair-share.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import type { Database, Presumption } from '../../platform/database/database.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { addressNotAllowed, isAddressAllowed } from '../identity/allowed-addresses.ts';
import {
  type Authentication,
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

/** Rows of about a kilobyte, of the keys that were used last. */
const MAX_KNOWN = 10_000;
/** Nothing is presumed of a key for so long after a wrong presumption: it may be used in two environments in turns. */
const PAUSE_MS = 60_000;

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
  const known = new LRUCache<string, KeyRow>({ max: MAX_KNOWN });
  const recentlyChanged = new LRUCache<string, true>({ max: MAX_KNOWN, ttl: PAUSE_MS });

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

  /** Tokens that nothing is known of, perhaps guesses, share by the network that they come from. */
  function holderOf(query: KeyQuery, { ip }: Credentials): Holder {
    const row = known.get(nameOf(query));
    return row ? organizationHolder(row.organizationId) : networkHolder(ip);
  }

  return {
    accepts: isApiKeyToken,
    async authenticate(credentials) {
      if (!isApiKeyToken(credentials.token)) throw unauthenticated();
      const query = toQuery(credentials);
      const row = await database.inShareOf(holderOf(query, credentials), (db) => findKey(db, query));
      if (!row || row.isExpired) throw unauthenticated();
      const authentication = toAuthentication(row, credentials);
      known.set(nameOf(query), row);
      recordUse(row, credentials.ip);
      return authentication;
    },
    presume(credentials) {
      const query = toQuery(credentials);
      const presumed = known.get(nameOf(query));
      if (!presumed || recentlyChanged.has(nameOf(query))) return undefined;
      try {
        const { scope, ...authentication } = toAuthentication(presumed, credentials);
        return {
          ...authentication,
          scope: { ...scope, presumption: toPresumption(presumed, query, credentials) },
        };
      } catch {
        // The database may know better by now.
        return undefined;
      }
    },
  };

  function toPresumption(presumed: KeyRow, query: KeyQuery, { ip }: Credentials): Presumption {
    let isConfirmed = false;
    let confirmation: Promise<void> | undefined;
    async function ask(db: Db): Promise<void> {
      const row = await findKey(db, query);
      if (!row || !isDeepStrictEqual({ ...row, isRecentlyUsed: presumed.isRecentlyUsed }, presumed)) {
        known.delete(nameOf(query));
        recentlyChanged.set(nameOf(query), true);
        throw new Error('The API key has changed since its last use.');
      }
      isConfirmed = true;
      recordUse(row, ip);
    }
    return {
      get isConfirmed() {
        return isConfirmed;
      },
      confirm: (db) =>
        (confirmation ??= db
          ? ask(db)
          : database.inShareOf(organizationHolder(presumed.organizationId), ask)),
    };
  }
}

/** @throws AppError if the key may not be used this way. */
function toAuthentication(row: KeyRow, credentials: Credentials): Authentication {
  const { environmentId, organizationId, ip } = credentials;
  if (organizationId !== undefined && organizationId !== row.organizationId)
    throw notFound('organization', organizationId);
  if (!isAddressAllowed(ip, row.allowedCidrs)) throw addressNotAllowed('key');
  if (!isAddressAllowed(ip, row.organizationCidrs)) throw addressNotAllowed('organization');
  if (row.organizationStatus === 'deleted') throw organizationDeleted(row.organizationId);
  if (row.environmentId === null) throw notFound('environment', environmentId ?? 'production');
  return {
    scope: {
      ...toTenantScope(row, row.environmentId, credentials),
      permissions: new Set(row.permissions.filter((name) => !row.isPrevious || name !== 'keys:manage')),
      actor: { kind: 'api_key', id: row.keyId },
    },
    suspension: findSuspension(row),
    expiresAt: row.expiresAt,
  };
}

const toQuery = ({ token, environmentId, resourceId }: Credentials): KeyQuery => ({
  tokenHash: hashApiKeyToken(token),
  environmentId: toIdParameter('environment', environmentId),
  resourceId: resourceId ?? null,
});

/** The resource is left out: mostly, all that a key reads are of one environment. */
const nameOf = ({ tokenHash, environmentId }: KeyQuery): string =>
  `${tokenHash.toString('base64')} ${environmentId}`;

async function findKey(db: Db, query: KeyQuery) {
  const [key] = await selectKey(db, query);
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
    ])
    .modifyEnd(PREPARED);
});
