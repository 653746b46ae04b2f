import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { RECOVERY_DAYS } from '../../workflows/deletions/purge.contract.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import type { PasswordHashing } from '../identity/password.ts';
import type { Client, Person } from '../identity/person.ts';
import type { MemberRole } from '../identity/roles.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { endSessions } from '../sessions/session.service.ts';
import {
  isAddressTaken,
  lockAccountAddress,
  normalizeAccountAddress,
  voidSignUps,
} from './account-address.ts';
import { createAccountToken, useAccountToken, voidAccountTokens } from './account-tokens.ts';
import { requireCurrentPassword } from './require-current-password.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';

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

export type AccountService = ReturnType<typeof createAccountService>;

export interface AccountOptions {
  database: Database;
  notifications: PersonNotificationService;
  throttle: SignInThrottle;
  passwordHashing: PasswordHashing;
  ownDomains: readonly string[];
}

const EMAIL_CHANGE_LIFETIME_MINUTES = 24 * 60;
const MAX_CHANGES_PER_HOUR = 3;

export function createAccountService(options: AccountOptions) {
  const { database, notifications, ownDomains } = options;
  return {
    get: (userId: string): Promise<Account> =>
      database.peopleTransaction(({ db }) => readAccount(db, userId)),

    /** Lists the person's organizations, oldest first, including closed ones that can still be recovered. */
    listOrganizations: (userId: string): Promise<Membership[]> =>
      database.peopleTransaction(({ db }) => readMemberships(db, userId)),

    /** @param change omitted fields stay; null clears a field. */
    update: (
      { userId }: Person,
      { name, avatarUrl }: { name?: string | null; avatarUrl?: string | null },
    ): Promise<Account> =>
      database.peopleTransaction(async ({ db }) => {
        const safeName = typeof name === 'string' ? requireSafeName(name, '/body/name') : name;
        await db
          .updateTable('users')
          .set({
            updated_at: sql<Date>`now()`,
            ...(safeName === undefined ? {} : { name: safeName }),
            ...(avatarUrl === undefined ? {} : { avatar_url: avatarUrl }),
          })
          .where('id', '=', userId)
          .execute();
        return readAccount(db, userId);
      }),

    /**
     * Mails a token to the new address. The address changes when the token is confirmed.
     *
     * @throws AppError `invalid_credentials`, `validation_error`, or `rate_limited` for a fourth request within an hour. The
     * answer does not reveal that an address is taken; its owner is informed instead.
     */
    async requestEmailChange(
      person: Person,
      { currentPassword, newEmail }: { currentPassword?: string; newEmail: string },
    ): Promise<void> {
      const email = normalizeAccountAddress(newEmail, '/body/new_email', ownDomains);
      await requireCurrentPassword(options, person, currentPassword);
      await database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        await lockKey(db, 'email-changes', person.userId);
        await requireFewChanges(db, person.userId);
        const token = await createAccountToken(db, {
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
        if (await isAddressTaken(db, email))
          await notifications.notify(transaction, { ...recipient, template: 'account-exists' });
        else
          await notifications.notify<'confirm-new-email', 'token'>(transaction, {
            ...recipient,
            template: 'confirm-new-email',
            secrets: { token },
          });
      });
    },

    /** Changes the address with a mailed token, informs the old address, and ends all sessions and connections. */
    confirmEmailChange: (token: string, client: Client): Promise<void> =>
      database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        const { userId, newEmail } = await useAccountToken(db, token, 'change_email');
        if (newEmail === null) throw invalidCredentials();
        await lockAccountAddress(db, newEmail);
        if (await isAddressTaken(db, newEmail)) throw invalidCredentials();
        const old = await db
          .selectFrom('users')
          .select('email')
          .where('id', '=', userId)
          .where('deleted_at', 'is', null)
          .forUpdate()
          .executeTakeFirst();
        if (!old) throw invalidCredentials();
        await db
          .updateTable('users')
          .set({ email: newEmail, email_verified_at: sql<Date>`now()`, updated_at: sql<Date>`now()` })
          .where('id', '=', userId)
          .execute();
        // Others may have begun sign-ups with the address.
        await voidSignUps(db, newEmail);
        await voidAccountTokens(db, userId);
        await endSessions(db, userId, null);
        await recordPersonAudit(db, { userId, ...client }, { action: 'user.email_changed' });
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
async function requireFewChanges(db: Db, userId: string): Promise<void> {
  const row = await db
    .selectFrom('account_tokens')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('user_id', '=', userId)
    .where('purpose', '=', 'change_email')
    .where('created_at', '>', sql<Date>`now() - interval '1 hour'`)
    .executeTakeFirst();
  if ((row?.count ?? 0) >= MAX_CHANGES_PER_HOUR)
    throw new AppError('rate_limited', {
      detail: 'Too many changes of the email address within an hour.',
      fix: 'Look for the emails already sent, also among spam, or try again in an hour.',
      headers: { 'retry-after': '3600' },
    });
}

async function readAccount(db: Db, userId: string): Promise<Account> {
  const account = await db
    .selectFrom('users')
    .select((eb) => [
      'users.id',
      'users.email',
      eb('users.email_verified_at', 'is not', null).$castTo<boolean>().as('isEmailVerified'),
      'users.name',
      'users.avatar_url as avatarUrl',
      eb
        .exists(
          eb
            .selectFrom('mfa_enrollments')
            .select('mfa_enrollments.id')
            .whereRef('mfa_enrollments.user_id', '=', 'users.id')
            .where('mfa_enrollments.confirmed_at', 'is not', null),
        )
        .$castTo<boolean>()
        .as('isMfaEnabled'),
      'users.created_at as createdAt',
      'users.deleted_at as deletedAt',
    ])
    .where('users.id', '=', userId)
    .executeTakeFirst();
  if (!account)
    throw new AppError('not_found', {
      detail: 'The account does not exist.',
      fix: 'Sign up, or sign in again.',
    });
  const organizations = (await readMemberships(db, userId)).filter(({ deletedAt }) => deletedAt === null);
  return { ...account, organizations };
}

function readMemberships(db: Db, userId: string): Promise<Membership[]> {
  return db
    .selectFrom('members')
    .innerJoin('organizations', 'organizations.id', 'members.org_id')
    .select([
      'organizations.id as organizationId',
      'organizations.name',
      'organizations.slug',
      'members.role',
      'organizations.status',
      'organizations.deleted_at as deletedAt',
    ])
    .where('members.user_id', '=', userId)
    .where((eb) =>
      eb.or([
        eb('organizations.deleted_at', 'is', null),
        eb('organizations.deleted_at', '>', sql<Date>`now() - make_interval(days => ${RECOVERY_DAYS})`),
      ]),
    )
    .orderBy('organizations.id')
    .execute();
}
