import { randomBytes } from 'node:crypto';
import type { Database } from '../../platform/database/database.ts';
import { createPasswordHashing } from '../identity/password.ts';
import { enrollTotp, type TotpEnrollment } from '../people/mfa-enrollments.ts';
import { createUser } from '../people/users.ts';
import { setStaffRole } from '../staff/staff-roles.ts';
import type { StaffRole } from '../staff/staff-scope.ts';

export interface AddedStaffMember {
  userId: string;
  email: string;
  role: StaffRole;
  /** Shown once; null for a person with an account, who keeps their password. */
  password: string | null;
  /** Base32, of the enrolled authenticator app; null if none was enrolled. */
  totpSecret: string | null;
}

export interface NewStaffMember {
  email: string;
  role: StaffRole;
  /** Enrolls an authenticator app for a new user. Otherwise the user enrolls one at the first sign-in. */
  totp?: Pick<TotpEnrollment, 'secretBox' | 'issuer'>;
}

/**
 * Makes a person staff, with a new account if the address has none. Repeating the call changes the role.
 *
 * @param database connected as the worker role.
 */
export async function addStaffMember(
  database: Database,
  { email: address, role, totp }: NewStaffMember,
): Promise<AddedStaffMember> {
  const email = address.toLowerCase();
  const password = randomBytes(18).toString('base64url');
  const passwordHash = await createPasswordHashing().hash(password, null);
  return database.systemTransaction(async ({ db, flush }) => {
    const existing = await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
    const userId =
      existing?.id ?? (await createUser(db, { email, passwordHash, emailVerifiedAt: new Date() }));
    await flush();
    await setStaffRole(db, { userId, role, addedBy: null });
    const totpSecret = totp && !existing ? await enrollTotp(db, { userId, email, ...totp }) : null;
    return { userId, email, role, password: existing ? null : password, totpSecret };
  });
}
