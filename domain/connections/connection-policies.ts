import { AppError } from '../../platform/errors.ts';
import type { Person } from '../identity/person.ts';
import { findPolicyViolation, type SessionPolicies } from '../sessions/session-policies.ts';

type ProvedPerson = Pick<Person, 'method' | 'factors' | 'authenticatedAt'>;

/** The organization of a connection, and its requirements. */
export interface ConnectedOrganization
  extends Pick<SessionPolicies, 'requireMfa' | 'enforceSso' | 'ssoSatisfiesMfa'> {
  organizationId: string;
  /** Whether the organization's active SSO configuration signed the person in when they consented. */
  isActiveSso: boolean;
}

/**
 * Checks what the organization requires of sign-ins for a connection: how its person had proved who they are when they
 * consented. A connection has its own expiry, so the age of sessions does not matter; and an owner without single sign-on,
 * who may enter in an emergency, makes no lasting access by it.
 */
export function findConnectionViolation(
  person: ProvedPerson,
  organization: ConnectedOrganization,
): AppError | undefined {
  const violation = findPolicyViolation(person, {
    ...organization,
    role: 'viewer',
    sessionMaxAgeHours: null,
    allowedCidrs: [],
  });
  return (
    violation &&
    new AppError('policy_violation', {
      detail: violation.detail,
      fix: 'Sign in as the organization requires it, and connect again.',
      extensions: { ...violation.extensions },
    })
  );
}
