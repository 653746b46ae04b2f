import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { RECOVERY_DAYS } from '../../workflows/deletions/purge.contract.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { endSessions } from '../sessions/session.service.ts';
import { createAccountToken, voidAccountTokens } from './account-tokens.ts';

/** Marks an account as deleted, ends its sessions and voids all that waits for a token or a second factor. */
export async function markAccountDeleted(em: EntityManager, userId: string, deletedAt: Date): Promise<void> {
  const deleted = await em.execute<object[]>(sql`
    update users set deleted_at = ${deletedAt}, updated_at = ${deletedAt}
    where id = ${userId} and deleted_at is null returning id`);
  // Another request of the person was first.
  if (deleted.length === 0) throw invalidCredentials();
  await endSessions(em, userId, null);
  await voidAccountTokens(em, userId);
  await em.execute(
    sql`update mfa_challenges set used_at = now() where user_id = ${userId} and used_at is null`,
  );
}

/** Restores a deleted account, and returns its address. The caller has ended the deletion as recovered. */
export async function restoreAccount(em: EntityManager, userId: string): Promise<string> {
  const [user] = await em.execute<{ email: string }[]>(sql`
    update users set deleted_at = null, updated_at = now() where id = ${userId} and status = 'active' returning email`);
  if (!user) throw invalidCredentials();
  await voidAccountTokens(em, userId);
  return user.email;
}

/** Deletes a user for good, with sessions, factors, tokens, memberships and sign-ups. For workers. */
export async function deleteUser(em: EntityManager, userId: string): Promise<void> {
  await em.execute(sql`delete from sign_ups where email = (select email from users where id = ${userId})`);
  await em.execute(sql`delete from users where id = ${userId}`);
}

const DAY_MINUTES = 24 * 60;
const MAX_EMAILS_PER_HOUR = 3;

/**
 * Creates a token that recovers a deleted account. Earlier ones stay valid, because each email of the deletion has its own;
 * the recovery voids all. The token can be used only while the deletion can be recovered.
 */
export function createRecoveryToken(em: EntityManager, userId: string): Promise<string> {
  return createAccountToken(em, {
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
  const { em } = transaction;
  const [user] = await em.execute<{ id: string; email: string; dueAt: string; emails: number }[]>(sql`
    select id, email, deleted_at + ${RECOVERY_DAYS} * interval '1 day' as "dueAt",
      (select count(*)::int from account_tokens t where t.user_id = u.id and t.purpose = 'recover'
        and t.created_at > now() - interval '1 hour') as emails
    from users u where email = ${email} and status = 'active'
      and deleted_at > now() - ${RECOVERY_DAYS} * interval '1 day'`);
  if (!user) return false;
  // Refusing here would reveal that the account exists.
  if (user.emails > MAX_EMAILS_PER_HOUR) return true;
  await notifications.notify<'account-recoverable', 'token'>(transaction, {
    userId: user.id,
    email: user.email,
    template: 'account-recoverable',
    params: { recoverableUntil: formatUtc(new Date(user.dueAt)) },
    secrets: { token: await createRecoveryToken(em, user.id) },
  });
  return true;
}
