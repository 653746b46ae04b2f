import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import type { Person } from '../identity/person.ts';
import { findStaffRole } from './staff-roles.ts';
import type { StaffRole, StaffScope } from './staff-scope.ts';

/** A session can use `/admin` for this long after signing in. */
const STAFF_SESSION_HOURS = 12;

/** Resolves the session of a staff member. */
export type StaffAuthenticator = ReturnType<typeof createStaffAuthenticator>;

export function createStaffAuthenticator({ database }: { database: Database }) {
  return {
    /**
     * @param requiredRole `support`: staff of every role.
     * @throws AppError `permission_denied` for others, and for a staff member without the role or without a second factor;
     * `session_expired` {@link STAFF_SESSION_HOURS} after they signed in.
     */
    async authenticate(person: Person, requiredRole: StaffRole): Promise<StaffScope> {
      const { userId, requestId } = person;
      const role = await database.staffTransaction({ requestId }, ({ db }) => findStaffRole(db, userId));
      if (role === null) throw noStaff();
      requireStrongSession(person);
      if (requiredRole === 'admin' && role !== 'admin')
        throw new AppError('permission_denied', {
          detail: 'This needs the staff role admin; yours is support.',
          fix: 'Ask an admin of the service.',
        });
      return { staffId: person.userId, role, person, ip: person.ip, requestId: person.requestId };
    },
  };
}

/** When the session can no longer use `/admin`. */
export function endOfStaffAccess({ authenticatedAt, sessionExpiresAt }: Person): Date {
  const signInDueAt = authenticatedAt.getTime() + STAFF_SESSION_HOURS * 3_600_000;
  return new Date(Math.min(signInDueAt, sessionExpiresAt.getTime()));
}

function noStaff(): AppError {
  return new AppError('permission_denied', {
    detail: 'This is for the staff who operate the service.',
    fix: 'Work in your own organization instead: GET /api/v1/me shows it.',
  });
}

/**
 * Neither an organization's identity provider nor a public provider may decide who operates the service, so staff prove both
 * factors to this service.
 */
function requireStrongSession({ kind, method, factors, authenticatedAt }: Person): void {
  const isStrong = kind === 'full' && (method === 'passkey' || (method === 'password' && factors.length > 0));
  if (!isStrong)
    throw new AppError('permission_denied', {
      detail: 'Staff need a session that began with a passkey, or with a password and a second factor.',
      fix: 'Enroll a factor if you have none (POST /api/v1/auth/mfa/totp/setup), and sign in with it.',
      extensions: { policy: 'require_mfa' },
    });
  if (Date.now() - authenticatedAt.getTime() > STAFF_SESSION_HOURS * 3_600_000)
    throw new AppError('session_expired', {
      detail: `Staff sign in every ${STAFF_SESSION_HOURS} hours.`,
      fix: 'Sign in again.',
      headers: { 'www-authenticate': 'Bearer' },
    });
}
