import { sql } from 'kysely';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { RECOVERY_DAYS } from '../../workflows/deletions/purge.contract.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { endSessions } from '../sessions/session.service.ts';
import { createAccountToken, voidAccountTokens } from './account-tokens.ts';
import { voidPendingSignIns } from './pending-sign-ins.ts';

/** Marks an account as deleted, ends its sessions and connections, and voids everything that waits for a token or a second factor. */
export async function markAccountDeleted(db: Db, userId: string, deletedAt: Date): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('users')
    .set({ deleted_at: deletedAt, updated_at: deletedAt })
    .where('id', '=', userId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  // Another request of the person came first.
  if (numUpdatedRows === 0n) throw invalidCredentials();
  await endSessions(db, userId, null);
  await voidAccountTokens(db, userId);
  await voidPendingSignIns(db, userId);
}

/** Restores a deleted account, and returns its address. The caller has ended the deletion as recovered. */
export async function restoreAccount(db: Db, userId: string): Promise<string> {
  const user = await db
    .updateTable('users')
    .set({ deleted_at: null, updated_at: sql<Date>`now()` })
    .where('id', '=', userId)
    .where('status', '=', 'active')
    .returning('email')
    .executeTakeFirst();
  if (!user) throw invalidCredentials();
  await voidAccountTokens(db, userId);
  return user.email;
}

/** Deletes a user for good, with sessions, factors, tokens, memberships and sign-ups. For workers. */
export async function deleteUser(db: Db, userId: string): Promise<void> {
  await db
    .deleteFrom('sign_ups')
    .where('email', '=', (eb) => eb.selectFrom('users').select('users.email').where('users.id', '=', userId))
    .execute();
  await db.deleteFrom('users').where('id', '=', userId).execute();
}

const DAY_MINUTES = 24 * 60;
const MAX_EMAILS_PER_HOUR = 3;

/**
 * Creates a token that recovers a deleted account. Earlier tokens stay valid, because each email about the deletion contains
 * its own; the recovery voids all of them. The token works only while the deletion can be recovered.
 */
export function createRecoveryToken(db: Db, userId: string): Promise<string> {
  return createAccountToken(db, {
    userId,
    purpose: 'recover',
    lifetimeMinutes: RECOVERY_DAYS * DAY_MINUTES,
    keepsEarlier: true,
  });
}

/**
 * Mails another token if the address belongs to an account that can be recovered, at most three times an hour. For calls
 * whose answer must not reveal that the account exists. The caller has locked the address.
 *
 * @returns whether the address belongs to such an account.
 */
export async function mailRecoveryToken(
  transaction: Transaction,
  notifications: PersonNotificationService,
  email: string,
): Promise<boolean> {
  const { db } = transaction;
  const user = await db
    .selectFrom('users')
    .select((eb) => [
      'users.id',
      'users.email',
      sql<Date>`users.deleted_at + make_interval(days => ${RECOVERY_DAYS})`.as('dueAt'),
      eb
        .selectFrom('account_tokens')
        .select(eb.fn.countAll<number>().as('count'))
        .whereRef('account_tokens.user_id', '=', 'users.id')
        .where('account_tokens.purpose', '=', 'recover')
        .where('account_tokens.created_at', '>', sql<Date>`now() - interval '1 hour'`)
        .as('emails'),
    ])
    .where('users.email', '=', email)
    .where('users.status', '=', 'active')
    .where('users.deleted_at', '>', sql<Date>`now() - make_interval(days => ${RECOVERY_DAYS})`)
    .executeTakeFirst();
  if (!user) return false;
  // Refusing here would reveal that the account exists.
  if ((user.emails ?? 0) > MAX_EMAILS_PER_HOUR) return true;
  await notifications.notify<'account-recoverable', 'token'>(transaction, {
    userId: user.id,
    email: user.email,
    template: 'account-recoverable',
    params: { recoverableUntil: formatUtc(user.dueAt) },
    secrets: { token: await createRecoveryToken(db, user.id) },
  });
  return true;
}
