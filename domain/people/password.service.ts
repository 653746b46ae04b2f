import { sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import type { PasswordHashing } from '../identity/password.ts';
import type { Client, Person } from '../identity/person.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { endSessions } from '../sessions/session.service.ts';
import { lockAccountAddress, markAddressVerified } from './account-address.ts';
import { createAccountToken, useAccountToken, voidAccountTokens } from './account-tokens.ts';
import { mailRecoveryToken } from './deleted-account.ts';
import { requireStrongPassword } from './password-rules.ts';
import { voidPendingSignIns } from './pending-sign-ins.ts';
import { requireCurrentPassword } from './require-current-password.ts';
import { forgetFailures, type SignInThrottle } from './sign-in-throttle.ts';

export type PasswordService = ReturnType<typeof createPasswordService>;

export interface PasswordOptions {
  database: Database;
  notifications: PersonNotificationService;
  throttle: SignInThrottle;
  passwordHashing: PasswordHashing;
}

const RESET_LIFETIME_MINUTES = 60;
const MAX_RESETS_PER_HOUR = 3;

export function createPasswordService(options: PasswordOptions) {
  const { database, notifications, throttle, passwordHashing } = options;
  return {
    /**
     * Mails a token to reset the password, if an account has the address, at most three times an hour. The outcome is the
     * same if no account has it.
     */
    async requestReset(entered: string): Promise<void> {
      const email = entered.toLowerCase();
      await database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        await lockAccountAddress(db, email);
        // A deleted account is recovered, not entered with a new password.
        if (await mailRecoveryToken(transaction, notifications, email)) return;
        const user = await findResettableUser(db, email);
        // Refusing here would reveal that the account exists.
        if (!user || (user.resets ?? 0) >= MAX_RESETS_PER_HOUR) return;
        const token = await createAccountToken(db, {
          userId: user.id,
          purpose: 'reset_password',
          lifetimeMinutes: RESET_LIFETIME_MINUTES,
        });
        await notifications.notify<'reset-password', 'token'>(transaction, {
          userId: user.id,
          email: user.email,
          template: 'reset-password',
          params: {},
          secrets: { token },
        });
      });
    },

    /**
     * Sets a new password with a mailed token, ends all sessions and connections, and the delay after failed sign-ins.
     *
     * @throws AppError `invalid_credentials` for an unknown, used or expired token; `validation_error` for a weak password.
     */
    async reset({ token, password }: { token: string; password: string }, client: Client): Promise<void> {
      requireStrongPassword(password, '/body/password');
      const passwordHash = await passwordHashing.hash(password, client.ip);
      await throttle.run({ account: `reset:${client.ip}`, ip: client.ip }, () =>
        database.peopleTransaction(async (transaction) => {
          const { db } = transaction;
          const { userId } = await useAccountToken(db, token, 'reset_password');
          // The token proves the address, too.
          await markAddressVerified(db, userId);
          const email = await setPassword(transaction, { userId, passwordHash, keepSessionId: null, client });
          await forgetFailures(db, email);
        }),
      );
    },

    /**
     * Changes the password, ends the other sessions and all connections, and voids all mailed tokens.
     *
     * @param input.currentPassword required if the person has one; without one, the sign-in must be fresh.
     * @throws AppError `invalid_credentials`, `session_expired` or `validation_error`.
     */
    async change(
      person: Person,
      { currentPassword, newPassword }: { currentPassword?: string; newPassword: string },
    ): Promise<void> {
      const user = await requireCurrentPassword(options, person, currentPassword);
      requireStrongPassword(newPassword, '/body/new_password', [user.email, user.name ?? '']);
      const passwordHash = await passwordHashing.hash(newPassword, person.ip);
      await database.peopleTransaction((transaction) =>
        setPassword(transaction, {
          userId: person.userId,
          passwordHash,
          keepSessionId: person.sessionId,
          client: person,
        }),
      );
    },
  };

  /** Returns the address of the account. */
  async function setPassword(
    transaction: Transaction,
    {
      userId,
      passwordHash,
      keepSessionId,
      client,
    }: {
      userId: string;
      passwordHash: string;
      keepSessionId: string | null;
      client: Pick<Client, 'ip' | 'requestId'> & { sessionId?: string };
    },
  ): Promise<string> {
    const { db } = transaction;
    const user = await db
      .updateTable('users')
      .set({ password_hash: passwordHash, updated_at: sql<Date>`now()` })
      .where('id', '=', userId)
      .where('deleted_at', 'is', null)
      .where('status', '=', 'active')
      .returning('email')
      .executeTakeFirst();
    if (!user)
      throw new AppError('conflict', {
        detail: 'The account was deleted or suspended.',
        fix: 'Recover the account first, or contact support.',
      });
    await endSessions(db, userId, keepSessionId);
    // Their first factor was the old password.
    await voidPendingSignIns(db, userId);
    // Tokens of every purpose: someone who knew the old password may have requested a change of the address.
    await voidAccountTokens(db, userId);
    await recordPersonAudit(db, { userId, ...client }, { action: 'user.password_changed' });
    await notifications.notify(transaction, {
      userId,
      email: user.email,
      template: 'password-changed',
      params: { at: formatUtc(new Date()), ip: client.ip },
    });
    return user.email;
  }
}

function findResettableUser(db: Db, email: string) {
  return db
    .selectFrom('users')
    .select((eb) => [
      'users.id',
      'users.email',
      eb
        .selectFrom('account_tokens')
        .select(eb.fn.countAll<number>().as('count'))
        .whereRef('account_tokens.user_id', '=', 'users.id')
        .where('account_tokens.purpose', '=', 'reset_password')
        .where('account_tokens.created_at', '>', sql<Date>`now() - interval '1 hour'`)
        .as('resets'),
    ])
    .where('users.email', '=', email)
    .where('users.deleted_at', 'is', null)
    .where('users.status', '=', 'active')
    .executeTakeFirst();
}
