import { AppError } from '../../platform/errors.ts';
import type { Person } from './person.ts';
import type { Scope } from './scope.ts';

export interface Credentials {
  token: string;
  /** The environment named by `x-env-id`; only an unbound credential may select one. */
  environmentId: string | undefined;
  /**
   * The resource that the path names. An unbound credential that selects no environment works in the environment of the
   * resource, or in `production` if the path names none.
   */
  resourceId: string | undefined;
  /** The organization named by `x-org-id`, for people who belong to several. */
  organizationId: string | undefined;
  /** The token of the browser's own session, for the cookie of an impersonation; undefined outside pages. */
  browserSession?: string;
  ip: string;
  requestId: string;
}

export interface Authentication {
  scope: Scope;
  /** The error for changes while the organization or environment is suspended; reads are allowed. */
  suspension: AppError | undefined;
  /** When the credential expires; null if it does not. */
  expiresAt: Date | null;
}

/** Resolves one kind of credential. */
export interface Authenticator {
  /** Whether the token has the form of this kind of credential. */
  accepts(token: string): boolean;
  /**
   * Resolves a token to its scope in one organization.
   *
   * @throws AppError `unauthenticated`, without distinguishing unknown, expired and revoked credentials; `not_found` for an
   * environment outside its scope; `organization_required` for a person who belongs to several organizations and names none;
   * `policy_violation` if a policy of the organization does not allow the credential.
   */
  authenticate(credentials: Credentials): Promise<Authentication>;
  /**
   * What the same credentials were resolved to a moment ago, as a presumption of the scope: for reads, which confirm it in
   * their transaction.
   *
   * @returns undefined if nothing is known of them, or if they would be refused.
   */
  presume?(credentials: Credentials): Authentication | undefined;
}

/** Resolves sessions, also for operations that belong to a person and to no organization. */
export interface SessionAuthenticator extends Authenticator {
  /** @throws AppError `unauthenticated` or `session_expired`. */
  authenticatePerson(credentials: Credentials): Promise<Person>;
}

/** `deleted`: closed by an owner, and recoverable for 30 days. */
export type OrganizationStatus = 'active' | 'suspended' | 'deleted';

export interface TenantStatus {
  organizationStatus: OrganizationStatus;
  environmentStatus: 'active' | 'suspended' | null;
  /** Status of the inbox that the credential is bound to. */
  inboxStatus?: 'active' | 'suspended' | null;
}

/** The error for changes in a suspended organization or environment, or by a key of a suspended inbox. */
export function findSuspension({
  organizationStatus,
  environmentStatus,
  inboxStatus,
}: TenantStatus): AppError | undefined {
  if (organizationStatus === 'suspended') {
    return new AppError('organization_suspended', {
      detail: 'The organization is suspended: it can read but not change anything.',
      fix: 'Ask an owner of the organization: the email about the suspension says whether to pay an invoice or to contact support.',
    });
  }
  if (environmentStatus === 'suspended') {
    return new AppError('environment_suspended', {
      detail: 'The environment is suspended: it can be read but not changed.',
      fix: 'Use another environment, or ask an owner of the organization to contact support.',
    });
  }
  return inboxStatus === 'suspended' ? inboxSuspended() : undefined;
}

export function inboxSuspended(): AppError {
  return new AppError('inbox_suspended', {
    detail: 'The inbox is suspended: it can be read but not changed.',
    fix: 'Use another inbox, or ask an owner of the organization to contact support.',
  });
}

/**
 * For keys of the organization and sessions of its members. All others get the same answer as for an unknown organization.
 */
export function organizationDeleted(organizationId: string): AppError {
  return new AppError('organization_deleted', {
    detail: `The organization ${organizationId} is closed: its data cannot be read or changed.`,
    fix: `An owner can recover it within 30 days: POST /api/v1/user/me/organizations/${organizationId}/recover.`,
  });
}

/** For an API key on an operation that only people can call. The key may be valid. */
export function sessionRequired(): AppError {
  return new AppError('unauthenticated', {
    detail: 'This operation is for people: it needs a session, not an API key.',
    fix: 'Sign in (POST /api/v1/auth/login) and send the session token: "Authorization: Bearer sst_…".',
    headers: { 'www-authenticate': 'Bearer' },
  });
}

export function unauthenticated(): AppError {
  return new AppError('unauthenticated', {
    detail: 'The request has no valid API key or session.',
    fix: 'Send the header "Authorization: Bearer <API key or session token>" with one that is not expired or revoked.',
    headers: { 'www-authenticate': 'Bearer' },
  });
}
