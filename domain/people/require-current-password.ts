import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { verifyPassword } from '../identity/password.ts';
import { isFreshLogin, type Person } from '../identity/person.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';
import { invalidCredentials } from './start-session.ts';

export interface CurrentUser {
  id: string;
  email: string;
  name: string | null;
  passwordHash: string | null;
}

/**
 * Proves that the person at the session still is who signed in: by their password, or by a sign-in within the last ten
 * minutes for people without one (SSO, OAuth). A stolen session must not be enough to take over the account.
 *
 * @throws AppError `invalid_credentials`, `session_expired` or `rate_limited`.
 */
export async function requireCurrentPassword(
  { database, throttle }: { database: Database; throttle: SignInThrottle },
  person: Person,
  password: string | undefined,
): Promise<CurrentUser> {
  const user = await database.peopleTransaction(async ({ em }) => {
    const [row] = await em.execute<CurrentUser[]>(sql`
      select id, email, name, password_hash as "passwordHash" from users where id = ${person.userId}`);
    return row;
  });
  if (!user) throw invalidCredentials();
  if (password === undefined) {
    if (user.passwordHash === null && isFreshLogin(person)) return user;
    throw new AppError('session_expired', {
      detail: 'This change requires the current password, or a new sign-in if the account has none.',
      fix: 'Send current_password, or sign in again and repeat the request within ten minutes.',
    });
  }
  await throttle.run({ account: user.email, ip: person.ip }, async () => {
    if (!(await verifyPassword(user.passwordHash, password))) throw invalidCredentials();
  });
  return user;
}
