import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import { hashPassword } from '../identity/password.ts';
import type { Person } from '../identity/person.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { endSessions } from '../sessions/session.service.ts';
import { lockAccountAddress } from './account-address.ts';
import { createAccountToken, useAccountToken, voidAccountTokens } from './account-tokens.ts';
import type { Client } from './client.ts';
import { mailRecoveryToken } from './deleted-account.ts';
import { requireStrongPassword } from './password-rules.ts';
import { markAddressVerified } from './prove-address.ts';
import { requireCurrentPassword } from './require-current-password.ts';
import { forgetFailures, type SignInThrottle } from './sign-in-throttle.ts';

export interface PasswordService {
  /**
   * Mails a token to reset the password, if an account has the address, at most three times an hour. The outcome is the
   * same if none has.
   */
  requestReset(email: string): Promise<void>;
  /**
   * Sets a new password with a mailed token, ends all sessions and the delay after failed sign-ins.
   *
   * @throws AppError `invalid_credentials` for an unknown, used or expired token; `validation_error` for a weak password.
   */
  reset(input: { token: string; password: string }, client: Client): Promise<void>;
  /**
   * Changes the password, ends the other sessions and voids what waits for a mailed token.
   *
   * @param input.currentPassword required if the person has one; without one, the sign-in must be fresh.
   * @throws AppError `invalid_credentials`, `session_expired` or `validation_error`.
   */
  change(person: Person, input: { currentPassword?: string; newPassword: string }): Promise<void>;
}

export interface PasswordOptions {
  database: Database;
  notifications: PersonNotificationService;
  throttle: SignInThrottle;
}

const RESET_LIFETIME_MINUTES = 60;
const MAX_RESETS_PER_HOUR = 3;

export function createPasswordService(options: PasswordOptions): PasswordService {
  const { database, notifications, throttle } = options;
  return {
    async requestReset(entered) {
      const email = entered.toLowerCase();
      await database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        await lockAccountAddress(em, email);
        // The password of a deleted account is not the way in: its recovery is.
        if (await mailRecoveryToken(transaction, notifications, email)) return;
        const [user] = await em.execute<{ id: string; email: string; resets: number }[]>(sql`
          select id, email, (select count(*)::int from account_tokens t where t.user_id = u.id
              and t.purpose = 'reset_password' and t.created_at > now() - interval '1 hour') as resets
          from users u where email = ${email} and deleted_at is null and status = 'active'`);
        // Refusing here would reveal that the account exists.
        if (!user || user.resets >= MAX_RESETS_PER_HOUR) return;
        const token = await createAccountToken(em, {
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

    async reset({ token, password }, client) {
      requireStrongPassword(password, '/body/password');
      const passwordHash = await hashPassword(password, client.ip);
      await throttle.run({ account: `reset:${client.ip}`, ip: client.ip }, () =>
        database.peopleTransaction(async (transaction) => {
          const { userId } = await useAccountToken(transaction.em, token, 'reset_password');
          // The token proves the address, too.
          await markAddressVerified(transaction.em, userId);
          const email = await setPassword(transaction, { userId, passwordHash, keepSessionId: null, client });
          await forgetFailures(transaction.em, email);
        }),
      );
    },

    async change(person, { currentPassword, newPassword }) {
      const user = await requireCurrentPassword({ database, throttle }, person, currentPassword);
      requireStrongPassword(newPassword, '/body/new_password', [user.email, user.name ?? '']);
      const passwordHash = await hashPassword(newPassword, person.ip);
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
    const { em } = transaction;
    const [user] = await em.execute<{ email: string }[]>(sql`
      update users set password_hash = ${passwordHash}, updated_at = now()
      where id = ${userId} and deleted_at is null and status = 'active' returning email`);
    if (!user)
      throw new AppError('conflict', {
        detail: 'The account was deleted or suspended.',
        fix: 'Recover the account first, or contact support.',
      });
    await endSessions(em, userId, keepSessionId);
    await voidPendingSignIns(em, userId);
    // All of them: someone who knew the old password may have asked for a change of the address.
    await voidAccountTokens(em, userId);
    await recordPersonAudit(em, { userId, ...client }, { action: 'user.password_changed' });
    await notifications.notify(transaction, {
      userId,
      email: user.email,
      template: 'password-changed',
      params: { at: formatUtc(new Date()), ip: client.ip },
    });
    return user.email;
  }
}

/** A sign-in that waits for its second factor was made with the old password. */
async function voidPendingSignIns(em: EntityManager, userId: string): Promise<void> {
  await em.execute(
    sql`update mfa_challenges set used_at = now() where user_id = ${userId} and used_at is null`,
  );
}
