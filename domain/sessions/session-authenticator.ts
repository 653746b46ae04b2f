import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { addressNotAllowed, isAddressAllowed } from '../identity/allowed-addresses.ts';
import {
  type Credentials,
  findSuspension,
  type OrganizationStatus,
  organizationDeleted,
  type SessionAuthenticator,
  unauthenticated,
} from '../identity/authentication.ts';
import type { Person, SessionFactor, SessionKind, SessionMethod } from '../identity/person.ts';
import { type MemberRole, ROLE_PERMISSIONS } from '../identity/roles.ts';
import { toIdParameter } from '../identity/tenant-credential.ts';
import { findPolicyViolation, isBreakGlass } from './session-policies.ts';
import { hashSessionToken, isSessionToken } from './session-token.ts';

/** A row of the SQL function `find_session`. */
interface FoundSession {
  session_id: string;
  user_id: string;
  kind: SessionKind;
  method: SessionMethod;
  factors: SessionFactor[];
  sso_configuration_id: string | null;
  manages_account: boolean;
  authenticated_at: Date;
  expires_at: Date;
  last_seen_at: Date;
  membership_count: number;
  org_id: string | null;
  org_status: OrganizationStatus | null;
  role: MemberRole | null;
  env_id: string | null;
  env_status: 'active' | 'suspended' | null;
  active_sso: boolean;
  require_mfa: boolean;
  enforce_sso: boolean;
  sso_satisfies_mfa: boolean;
  session_max_age_hours: number | null;
  allowed_cidrs: string[];
}

type SessionRow = NonNullable<Awaited<ReturnType<typeof findSession>>>;

export interface SessionAuthenticatorOptions {
  database: Database;
  logger: Logger;
  /** Called when an owner enters an organization without its single sign-on. The request waits for it. */
  onBreakGlass(entry: BreakGlassEntry): Promise<void>;
}

export type BreakGlassEntry = Pick<Person, 'sessionId' | 'userId' | 'ip' | 'requestId'> & {
  organizationId: string;
};

/** Authenticates the sessions of people, and applies the policies of the organization they enter. */
export function createSessionAuthenticator({
  database,
  logger,
  onBreakGlass,
}: SessionAuthenticatorOptions): SessionAuthenticator {
  const pendingUpdates = new Set<string>();

  /** Runs asynchronously, at most once a minute per session. A lost update only makes `last_seen_at` less precise. */
  function recordUse({ sessionId, isRecentlySeen }: SessionRow): void {
    if (isRecentlySeen || pendingUpdates.has(sessionId)) return;
    pendingUpdates.add(sessionId);
    database
      .peopleTransaction(({ db }) =>
        db
          .updateTable('sessions')
          .set({ last_seen_at: sql<Date>`now()` })
          .where('id', '=', sessionId)
          .execute(),
      )
      .catch((error: unknown) => logger.warn({ err: error }, 'could not record the last use of a session'))
      .finally(() => pendingUpdates.delete(sessionId));
  }

  async function find(credentials: Credentials): Promise<SessionRow> {
    const row = isSessionToken(credentials.token) ? await findSession(database, credentials) : undefined;
    if (!row) throw unauthenticated();
    if (row.isExpired) throw sessionExpired();
    recordUse(row);
    return row;
  }

  return {
    accepts: isSessionToken,

    authenticatePerson: async (credentials) => toPerson(await find(credentials), credentials),

    async authenticate(credentials) {
      const row = await find(credentials);
      const { organizationId, organizationStatus, role, environmentId } = row;
      if (row.kind === 'enroll') throw enrollmentRequired();
      if (organizationId === null || organizationStatus === null || role === null)
        throw organizationUnknown(row, credentials);
      if (!isAddressAllowed(credentials.ip, row.allowedCidrs)) throw addressNotAllowed('organization');
      if (organizationStatus === 'deleted') throw organizationDeleted(organizationId);
      const person = toPerson(row, credentials);
      const entered = { ...row, organizationId, role };
      const violation = findPolicyViolation(person, entered);
      if (violation) throw violation;
      if (isBreakGlass(person, entered)) await onBreakGlass({ ...person, organizationId });
      if (environmentId === null) throw notFound('environment', credentials.environmentId ?? 'production');
      return {
        scope: {
          organizationId,
          environmentId,
          environmentBound: false,
          environmentSelected: credentials.environmentId !== undefined,
          permissions: new Set(ROLE_PERMISSIONS[role]),
          actor: { kind: 'user', id: row.userId },
          member: { person, role },
          ip: credentials.ip,
          requestId: credentials.requestId,
        },
        suspension: findSuspension({ organizationStatus, environmentStatus: row.environmentStatus }),
        expiresAt: endOfSession(row),
      };
    },
  };
}

async function findSession(
  { db }: Database,
  { token, organizationId, environmentId, resourceId }: Credentials,
) {
  const organization = toIdParameter('organization', organizationId);
  const environment = toIdParameter('environment', environmentId);
  return db
    .selectFrom(
      sql<FoundSession>`find_session(${hashSessionToken(token)}, ${organization}, ${environment}, ${resourceId ?? null})`.as(
        'session',
      ),
    )
    .select([
      'session_id as sessionId',
      'user_id as userId',
      'kind',
      'method',
      'factors',
      'sso_configuration_id as ssoConfigurationId',
      'manages_account as managesAccount',
      'authenticated_at as authenticatedAt',
      'expires_at as expiresAt',
      sql<boolean>`expires_at <= now()`.as('isExpired'),
      sql<boolean>`last_seen_at > now() - interval '1 minute'`.as('isRecentlySeen'),
      'membership_count as membershipCount',
      'active_sso as isActiveSso',
      'org_id as organizationId',
      'org_status as organizationStatus',
      'role',
      'env_id as environmentId',
      'env_status as environmentStatus',
      'require_mfa as requireMfa',
      'enforce_sso as enforceSso',
      'sso_satisfies_mfa as ssoSatisfiesMfa',
      'session_max_age_hours as sessionMaxAgeHours',
      'allowed_cidrs as allowedCidrs',
    ])
    .executeTakeFirst();
}

function toPerson(row: SessionRow, { ip, requestId }: Credentials): Person {
  const { userId, sessionId, kind, method, factors, ssoConfigurationId, managesAccount, authenticatedAt } =
    row;
  return {
    userId,
    sessionId,
    kind,
    method,
    factors,
    ssoConfigurationId,
    managesAccount,
    authenticatedAt,
    sessionExpiresAt: row.expiresAt,
    ip,
    requestId,
  };
}

/** When the session ends in the organization: by itself, or by the organization's policy. */
function endOfSession({ expiresAt, authenticatedAt, sessionMaxAgeHours }: SessionRow): Date {
  if (sessionMaxAgeHours === null) return expiresAt;
  return new Date(Math.min(expiresAt.getTime(), authenticatedAt.getTime() + sessionMaxAgeHours * 3_600_000));
}

function organizationUnknown(row: SessionRow, { organizationId }: Credentials): AppError {
  if (organizationId !== undefined) return notFound('organization', organizationId);
  if (row.membershipCount === 0)
    return new AppError('permission_denied', {
      detail: 'You are not a member of any open organization.',
      fix: 'Accept an invitation to one. If you closed yours, recover it: GET /api/v1/user/me/organizations lists it.',
    });
  return new AppError('organization_required', {
    detail: 'You are a member of several organizations.',
    fix: 'Name one in the header x-org-id; GET /api/v1/user/me/organizations lists them.',
  });
}

function sessionExpired(): AppError {
  return new AppError('session_expired', {
    detail: 'The session has expired.',
    fix: 'Sign in again.',
    headers: { 'www-authenticate': 'Bearer' },
  });
}

function enrollmentRequired(): AppError {
  return new AppError('policy_violation', {
    detail: 'An organization you belong to requires a second factor, and you have none yet.',
    fix: 'Enroll one: POST /api/v1/auth/mfa/totp/setup or /api/v1/auth/mfa/webauthn/register-options.',
    extensions: { policy: 'require_mfa' },
  });
}
