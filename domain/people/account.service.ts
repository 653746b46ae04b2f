import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database } from '../../platform/database/database.ts';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import { AppError } from '../../platform/errors.ts';
import { RECOVERY_DAYS } from '../../workflows/deletions/purge.contract.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import type { Person } from '../identity/person.ts';
import type { MemberRole } from '../identity/roles.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { endSessions } from '../sessions/session.service.ts';
import { lockAccountAddress, normalizeAccountAddress } from './account-address.ts';
import { createAccountToken, useAccountToken, voidAccountTokens } from './account-tokens.ts';
import type { Client } from './client.ts';
import { voidSignUps } from './prove-address.ts';
import { requireCurrentPassword } from './require-current-password.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';
import { invalidCredentials } from './start-session.ts';

export interface Membership {
  organizationId: string;
  name: string;
  slug: string;
  role: MemberRole;
  status: 'active' | 'suspended';
  /** When the organization was closed; null while it is open. */
  deletedAt: Date | null;
}

export interface Account {
  id: string;
  email: string;
  isEmailVerified: boolean;
  name: string | null;
  avatarUrl: string | null;
  isMfaEnabled: boolean;
  organizations: Membership[];
  createdAt: Date;
  deletedAt: Date | null;
}

export interface AccountService {
  get(userId: string): Promise<Account>;
  /** Lists the person's organizations, oldest first, with closed ones that can still be recovered. */
  listOrganizations(userId: string): Promise<Membership[]>;
  /** @param change omitted fields stay; null clears. */
  update(person: Person, change: { name?: string | null; avatarUrl?: string | null }): Promise<Account>;
  /**
   * Mails a token to the new address. The address changes when the token is confirmed.
   *
   * @throws AppError `invalid_credentials`, `validation_error`, or `rate_limited` for a fourth one within an hour. A taken address is not revealed: its owner is informed.
   */
  requestEmailChange(person: Person, input: { currentPassword?: string; newEmail: string }): Promise<void>;
  /** Changes the address with a mailed token, informs the old one and ends all sessions. */
  confirmEmailChange(token: string, client: Client): Promise<void>;
}

export interface AccountOptions {
  database: Database;
  notifications: PersonNotificationService;
  throttle: SignInThrottle;
  ownDomains: readonly string[];
}

const EMAIL_CHANGE_LIFETIME_MINUTES = 24 * 60;
const MAX_CHANGES_PER_HOUR = 3;

export function createAccountService(options: AccountOptions): AccountService {
  const { database, notifications, throttle, ownDomains } = options;
  return {
    get: (userId) => database.peopleTransaction(({ em }) => readAccount(em, userId)),

    listOrganizations: (userId) => database.peopleTransaction(({ em }) => readMemberships(em, userId)),

    update: (person, { name, avatarUrl }) =>
      database.peopleTransaction(async ({ em }) => {
        const safeName = typeof name === 'string' ? requireSafeName(name, '/body/name') : name;
        await em.execute(sql`
          update users set updated_at = now(),
            name = case when ${safeName !== undefined} then ${safeName ?? null} else name end,
            avatar_url = case when ${avatarUrl !== undefined} then ${avatarUrl ?? null} else avatar_url end
          where id = ${person.userId}`);
        return readAccount(em, person.userId);
      }),

    async requestEmailChange(person, { currentPassword, newEmail }) {
      const email = normalizeAccountAddress(newEmail, '/body/new_email', ownDomains);
      await requireCurrentPassword({ database, throttle }, person, currentPassword);
      await database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        await lockKey(em, 'email-changes', person.userId);
        await requireFewChanges(em, person.userId);
        const token = await createAccountToken(em, {
          userId: person.userId,
          purpose: 'change_email',
          newEmail: email,
          lifetimeMinutes: EMAIL_CHANGE_LIFETIME_MINUTES,
        });
        const recipient = {
          userId: person.userId,
          email,
          params: {},
        };
        if (await isAddressTaken(em, email))
          await notifications.notify(transaction, { ...recipient, template: 'account-exists' });
        else
          await notifications.notify<'confirm-new-email', 'token'>(transaction, {
            ...recipient,
            template: 'confirm-new-email',
            secrets: { token },
          });
      });
    },

    confirmEmailChange: (token, client) =>
      database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        const { userId, newEmail } = await useAccountToken(em, token, 'change_email');
        if (newEmail === null) throw invalidCredentials();
        await lockAccountAddress(em, newEmail);
        if (await isAddressTaken(em, newEmail)) throw invalidCredentials();
        const [old] = await em.execute<{ email: string }[]>(
          sql`select email from users where id = ${userId} and deleted_at is null for update`,
        );
        if (!old) throw invalidCredentials();
        await em.execute(sql`
          update users set email = ${newEmail}, email_verified_at = now(), updated_at = now() where id = ${userId}`);
        // A proved address ends what others have begun with it.
        await voidSignUps(em, newEmail);
        await voidAccountTokens(em, userId);
        await endSessions(em, userId, null);
        await recordPersonAudit(em, { userId, ...client }, { action: 'user.email_changed' });
        await notifications.notify(transaction, {
          userId,
          email: old.email,
          template: 'email-changed',
          params: { newEmail, at: formatUtc(new Date()), ip: client.ip },
        });
      }),
  };
}

/** A person must not make the service flood another person's mailbox. */
async function requireFewChanges(em: EntityManager, userId: string): Promise<void> {
  const [row] = await em.execute<{ count: number }[]>(sql`
    select count(*)::int as count from account_tokens
    where user_id = ${userId} and purpose = 'change_email' and created_at > now() - interval '1 hour'`);
  if ((row?.count ?? 0) >= MAX_CHANGES_PER_HOUR)
    throw new AppError('rate_limited', {
      detail: 'Too many changes of the email address within an hour.',
      fix: 'Look for the emails already sent, also among spam, or try again in an hour.',
      headers: { 'retry-after': '3600' },
    });
}

async function isAddressTaken(em: EntityManager, email: string): Promise<boolean> {
  const rows = await em.execute<object[]>(sql`select from users where email = ${email}`);
  return rows.length > 0;
}

type AccountRow = SerializedRow<Omit<Account, 'organizations'>>;

export async function readAccount(em: EntityManager, userId: string): Promise<Account> {
  const [row] = await em.execute<AccountRow[]>(sql`
    select u.id, u.email, u.email_verified_at is not null as "isEmailVerified", u.name, u.avatar_url as "avatarUrl",
      exists (select from mfa_enrollments e where e.user_id = u.id and e.confirmed_at is not null) as "isMfaEnabled",
      u.created_at as "createdAt", u.deleted_at as "deletedAt"
    from users u where u.id = ${userId}`);
  if (!row)
    throw new AppError('not_found', {
      detail: 'The account does not exist.',
      fix: 'Sign up, or sign in again.',
    });
  const organizations = (await readMemberships(em, userId)).filter(({ deletedAt }) => deletedAt === null);
  return {
    ...row,
    organizations,
    createdAt: new Date(row.createdAt),
    deletedAt: parseTimestamp(row.deletedAt),
  };
}

async function readMemberships(em: EntityManager, userId: string): Promise<Membership[]> {
  const rows = await em.execute<SerializedRow<Membership>[]>(sql`
    select o.id as "organizationId", o.name, o.slug, m.role, o.status, o.deleted_at as "deletedAt"
    from members m join organizations o on o.id = m.org_id
    where m.user_id = ${userId}
      and (o.deleted_at is null or o.deleted_at > now() - ${RECOVERY_DAYS} * interval '1 day') order by o.id`);
  return rows.map((row) => ({ ...row, deletedAt: parseTimestamp(row.deletedAt) }));
}
