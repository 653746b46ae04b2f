import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { verifyPassword } from '../identity/password.ts';
import type { Person } from '../identity/person.ts';
import { endSession } from '../sessions/session.service.ts';
import type { Client } from './client.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';
import { invalidCredentials, type SignInResult, startSession } from './start-session.ts';

export interface SignedIn {
  userId: string;
  signIn: SignInResult;
}

export interface SignInService {
  /**
   * Signs a person in by password. The answer and its time are the same for a wrong password and an unknown address.
   *
   * @throws AppError `invalid_credentials`; `rate_limited` after repeated failures; `account_deleted` after the right password.
   */
  signInByPassword(input: { email: string; password: string }, client: Client): Promise<SignedIn>;
  /** Ends the person's session. */
  signOut(person: Person): Promise<void>;
}

export function createSignInService({
  database,
  throttle,
}: {
  database: Database;
  throttle: SignInThrottle;
}): SignInService {
  return {
    async signInByPassword({ email, password }, client) {
      const account = email.toLowerCase();
      const device = { person: { email: account }, tokens: client.deviceTokens ?? [] };
      const userId = await throttle.run({ account, ip: client.ip, device }, async () => {
        const user = await findUserByEmail(database, account);
        const isRight = await verifyPassword(user?.passwordHash ?? null, password, client.ip);
        if (!user || !isRight) throw invalidCredentials();
        return user.id;
      });
      const signIn = await database.peopleTransaction(({ em }) =>
        startSession(em, { userId, method: 'password', ...client }),
      );
      return { userId, signIn };
    },

    signOut: ({ sessionId }) => database.peopleTransaction(({ db }) => endSession(db, sessionId)),
  };
}

/** Returns undefined for an unknown address and for a suspended account. `startSession` refuses a deleted one. */
function findUserByEmail(
  database: Database,
  email: string,
): Promise<{ id: string; passwordHash: string | null } | undefined> {
  return database.peopleTransaction(async ({ em }) => {
    const [user] = await em.execute<{ id: string; passwordHash: string | null }[]>(sql`
      select id, password_hash as "passwordHash" from users
      where email = ${email} and status = 'active'`);
    return user;
  });
}
