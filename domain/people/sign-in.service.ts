import type { Database } from '../../platform/database/database.ts';
import type { PasswordHashing } from '../identity/password.ts';
import type { Client, Person } from '../identity/person.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import { endSession } from '../sessions/session.service.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';
import { type SignInResult, startSession } from './start-session.ts';
import type { User } from './user.entity.ts';

export interface SignedIn {
  userId: string;
  signIn: SignInResult;
}

export type SignInService = ReturnType<typeof createSignInService>;

export function createSignInService({
  database,
  throttle,
  passwordHashing,
}: {
  database: Database;
  throttle: SignInThrottle;
  passwordHashing: PasswordHashing;
}) {
  return {
    /**
     * Signs a person in by password. The answer and its time are the same for a wrong password and an unknown address.
     *
     * @throws AppError `invalid_credentials`; `rate_limited` after repeated failures; `account_deleted` after the right
     * password.
     */
    async signInByPassword(
      { email, password }: { email: string; password: string },
      client: Client,
    ): Promise<SignedIn> {
      const account = email.toLowerCase();
      const device = { person: { email: account }, tokens: client.deviceTokens ?? [] };
      const userId = await throttle.run({ account, ip: client.ip, device }, async () => {
        const user = await findUserByEmail(database, account);
        const isRight = await passwordHashing.verify(user?.passwordHash ?? null, password, client.ip);
        if (!user || !isRight) throw invalidCredentials();
        return user.id;
      });
      const signIn = await database.peopleTransaction(({ db }) =>
        startSession(db, { userId, method: 'password', ...client }),
      );
      return { userId, signIn };
    },

    /** Ends the person's session. */
    signOut: ({ sessionId }: Person): Promise<void> =>
      database.peopleTransaction(({ db }) => endSession(db, sessionId)),
  };
}

/** Returns undefined for an unknown address and for a suspended account. `startSession` refuses a deleted one. */
function findUserByEmail(
  database: Database,
  email: string,
): Promise<Pick<User, 'id' | 'passwordHash'> | undefined> {
  return database.peopleTransaction(({ db }) =>
    db
      .selectFrom('users')
      .select(['id', 'password_hash as passwordHash'])
      .where('email', '=', email)
      .where('status', '=', 'active')
      .executeTakeFirst(),
  );
}
