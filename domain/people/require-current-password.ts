import type { Database } from '../../platform/database/database.ts';
import { invalid } from '../../platform/errors.ts';
import type { PasswordHashing } from '../identity/password.ts';
import { type Person, requireFreshLogin } from '../identity/person.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';
import type { User } from './user.entity.ts';

export type CurrentUser = Pick<User, 'id' | 'email' | 'name' | 'passwordHash'>;

/**
 * Requires that the caller is the person who signed in: by their password, or for people without one (SSO, OAuth) by a
 * sign-in within the last ten minutes. A stolen session must not be enough to take over the account.
 *
 * @throws AppError `validation_error` for a missing password, `invalid_credentials`, `session_expired` or `rate_limited`.
 */
export async function requireCurrentPassword(
  {
    database,
    throttle,
    passwordHashing,
  }: { database: Database; throttle: SignInThrottle; passwordHashing: PasswordHashing },
  person: Person,
  password: string | undefined,
): Promise<CurrentUser> {
  const user = await database.peopleTransaction(({ db }) =>
    db
      .selectFrom('users')
      .select(['id', 'email', 'name', 'password_hash as passwordHash'])
      .where('id', '=', person.userId)
      .executeTakeFirst(),
  );
  if (!user) throw invalidCredentials();
  if (password === undefined) {
    if (user.passwordHash !== null)
      throw invalid(
        '/body/current_password',
        'is required, because the account has a password',
        'Send the current password.',
      );
    requireFreshLogin(person);
    return user;
  }
  // A separate counter, so that strangers who guess passwords at the sign-in cannot stop a person who is signed in.
  await throttle.run({ account: `person:${user.id}`, ip: null }, async () => {
    if (!(await passwordHashing.verify(user.passwordHash, password, person.ip))) throw invalidCredentials();
  });
  return user;
}
