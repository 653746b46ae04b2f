import { AppError } from '../../platform/errors.ts';
import type { Person } from '../identity/person.ts';
import type { Policies } from '../policies/find-policies.ts';

export type SessionPolicies = Pick<
  Policies,
  'requireMfa' | 'enforceSso' | 'ssoSatisfiesMfa' | 'sessionMaxAgeHours' | 'allowedCidrs'
>;

/** What an organization requires of a session that enters it. Returns the error if the session does not satisfy it. */
export function findPolicyViolation(
  person: Pick<Person, 'method' | 'factors' | 'ssoConfigurationId' | 'authenticatedAt'>,
  policies: SessionPolicies & { ssoConfigurationIds?: readonly string[] },
  now = new Date(),
): AppError | undefined {
  const { requireMfa, ssoSatisfiesMfa, sessionMaxAgeHours } = policies;
  const ageMs = now.getTime() - person.authenticatedAt.getTime();
  if (sessionMaxAgeHours !== null && ageMs > sessionMaxAgeHours * 3_600_000)
    return new AppError('session_expired', {
      detail: `The organization ends sessions after ${sessionMaxAgeHours} hours.`,
      fix: 'Sign in again.',
      extensions: { policy: 'session_max_age_hours' },
    });
  const hasSecondFactor =
    person.factors.length > 0 || person.method === 'passkey' || (person.method === 'sso' && ssoSatisfiesMfa);
  if (requireMfa && !hasSecondFactor)
    return new AppError('policy_violation', {
      detail: 'The organization requires a second factor.',
      fix: 'Sign in with a second factor, or enroll one at POST /api/v1/auth/mfa/totp/setup.',
      extensions: { policy: 'require_mfa' },
    });
  return undefined;
}
