import { sql } from 'kysely';
import { networkHolder } from '../../platform/concurrency/fair-share.ts';
import { randomBase62, sha256 } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import {
  type Authentication,
  type Authenticator,
  type Credentials,
  findSuspension,
  type OrganizationStatus,
  organizationDeleted,
} from '../identity/authentication.ts';
import { toIdParameter } from '../identity/tenant-credential.ts';
import { hashSessionToken } from '../sessions/session-token.ts';
import { IMPERSONATION_PERMISSIONS } from './impersonation-access.ts';

const SECRET_LENGTH = 43;
const TOKEN_PATTERN = /^imt_[0-9A-Za-z]{43}$/;

/** Creates a new token: `imt_` and 43 random base62 characters (256 bits). */
export function createImpersonationToken(): string {
  return `imt_${randomBase62(SECRET_LENGTH)}`;
}

function isImpersonationToken(token: string): boolean {
  return TOKEN_PATTERN.test(token);
}

/** Returns the hash that is stored. */
export function hashImpersonationToken(token: string): Buffer {
  return sha256(token);
}

/** A row of the SQL function `find_impersonation`. */
interface FoundImpersonation {
  impersonation_id: string;
  staff_id: string;
  staff_session_id: string;
  allows_write: boolean;
  expires_at: Date;
  org_id: string;
  org_status: OrganizationStatus;
  env_id: string | null;
  env_status: 'active' | 'suspended' | null;
}

/**
 * Authenticates impersonations. Every request checks everything that they depend on. They have the permissions of an owner,
 * except sending; the operation decides what is allowed (`classifyOperation`).
 */
export function createImpersonationAuthenticator({ database }: { database: Database }): Authenticator {
  return {
    accepts: isImpersonationToken,
    async authenticate(credentials): Promise<Authentication> {
      const { organizationId, environmentId, ip, requestId } = credentials;
      const row = await database.inShareOf(networkHolder(credentials.ip), (db) => find(db, credentials));
      if (!row) throw impersonationEnded();
      if (organizationId !== undefined && organizationId !== row.organizationId)
        throw notFound('organization', organizationId);
      if (row.organizationStatus === 'deleted') throw organizationDeleted(row.organizationId);
      if (row.environmentId === null) throw notFound('environment', environmentId ?? 'production');
      return {
        scope: {
          organizationId: row.organizationId,
          environmentId: row.environmentId,
          environmentBound: false,
          environmentSelected: environmentId !== undefined,
          permissions: new Set(IMPERSONATION_PERMISSIONS),
          actor: { kind: 'staff', id: row.staffId },
          impersonation: {
            id: row.id,
            staffSessionId: row.staffSessionId,
            allowsWrite: row.allowsWrite,
            expiresAt: row.expiresAt,
          },
          isReadOnly: !row.allowsWrite,
          ip,
          requestId,
        },
        suspension: findSuspension(row),
        expiresAt: row.expiresAt,
      };
    },
  };
}

function find(db: Db, { token, environmentId, resourceId, browserSession }: Credentials) {
  const requested = toIdParameter('environment', environmentId);
  const presentedSession = browserSession === undefined ? null : hashSessionToken(browserSession);
  return db
    .selectFrom(
      sql<FoundImpersonation>`find_impersonation(${hashImpersonationToken(token)}, ${presentedSession}, ${requested},
        ${resourceId ?? null})`.as('impersonation'),
    )
    .select([
      'impersonation_id as id',
      'staff_id as staffId',
      'staff_session_id as staffSessionId',
      'allows_write as allowsWrite',
      'expires_at as expiresAt',
      'org_id as organizationId',
      'org_status as organizationStatus',
      'env_id as environmentId',
      'env_status as environmentStatus',
    ])
    .executeTakeFirst();
}

/** The same error for an unknown token and for every reason that ends an impersonation. */
function impersonationEnded(): AppError {
  return new AppError('session_expired', {
    detail: 'The impersonation has ended.',
    fix: 'Begin another one with your own session: POST /api/v1/admin/orgs/{id}/impersonate.',
    headers: { 'www-authenticate': 'Bearer' },
  });
}
