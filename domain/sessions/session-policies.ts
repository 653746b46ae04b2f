import { AppError } from '../../platform/errors.ts';
import type { Person } from '../identity/person.ts';
import type { MemberRole } from '../identity/roles.ts';
import type { Policies } from '../policies/find-policies.ts';

export type SessionPolicies = Pick<
  Policies,
  'requireMfa' | 'enforceSso' | 'ssoSatisfiesMfa' | 'sessionMaxAgeHours' | 'allowedCidrs'
>;

/** The organization that a session enters, and its requirements. */
export interface EnteredOrganization extends SessionPolicies {
  organizationId: string;
  role: MemberRole;
  /** Whether the organization's active SSO configuration started the session. */
  isActiveSso: boolean;
}

type ProvedPerson = Pick<Person, 'method' | 'factors' | 'authenticatedAt'>;

/**
 * Checks the organization's requirements for a session that enters it. Returns the error if the session does not meet them.
 */
export function findPolicyViolation(
  person: ProvedPerson,
  organization: EnteredOrganization,
  now = new Date(),
): AppError | undefined {
  const { organizationId, requireMfa, ssoSatisfiesMfa, sessionMaxAgeHours } = organization;
  if (organization.enforceSso && !organization.isActiveSso && !isBreakGlass(person, organization))
    return new AppError('policy_violation', {
      detail: 'The organization requires that its members sign in through its single sign-on.',
      fix: `Sign in through it: GET /api/v1/auth/sso/${organizationId} returns the URL.`,
      extensions: { policy: 'enforce_sso', sso_path: `/api/v1/auth/sso/${organizationId}` },
    });
  // Those who control the identity provider of one organization must not enter the other organizations of its members.
  if (person.method === 'sso' && !organization.isActiveSso)
    return new AppError('policy_violation', {
      detail:
        'This session belongs to the single sign-on of another organization, or to one that is no longer active.',
      fix: `Sign in with your password, passkey or provider, or with single sign-on: GET /api/v1/auth/sso/${organizationId}.`,
      extensions: { policy: 'sso_session' },
    });
  const ageMs = now.getTime() - person.authenticatedAt.getTime();
  if (sessionMaxAgeHours !== null && ageMs > sessionMaxAgeHours * 3_600_000)
    return new AppError('session_expired', {
      detail: `The organization ends sessions after ${sessionMaxAgeHours} hours.`,
      fix: 'Sign in again.',
      extensions: { policy: 'session_max_age_hours' },
    });
  // The SSO of another organization does not count, because that organization alone decides how its people sign in.
  const isProvedBySso = organization.isActiveSso && ssoSatisfiesMfa;
  const hasSecondFactor = person.factors.length > 0 || person.method === 'passkey' || isProvedBySso;
  if (requireMfa && !hasSecondFactor)
    return new AppError('policy_violation', {
      detail: 'The organization requires a second factor.',
      fix: 'Sign in with a second factor, or enroll one at POST /api/v1/auth/mfa/totp/setup.',
      extensions: { policy: 'require_mfa' },
    });
  return undefined;
}

/**
 * Whether an owner enters an organization without its single sign-on, for example because the identity provider fails. This
 * requires a passkey, or a password and a second factor. The owners are informed.
 */
export function isBreakGlass(
  { method, factors }: ProvedPerson,
  { enforceSso, isActiveSso, role }: EnteredOrganization,
): boolean {
  if (!enforceSso || isActiveSso || role !== 'owner') return false;
  return method === 'passkey' || (method === 'password' && factors.length > 0);
}
