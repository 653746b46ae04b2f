import { sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { recordOrganizationAudit, recordPersonAudit } from '../audit/record-audit.ts';
import type { PasswordHashing } from '../identity/password.ts';
import { type Client, type Person, requireFreshLogin } from '../identity/person.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { requireBreakGlassOwner } from '../organizations/break-glass-owner.ts';
import {
  closeOrganization,
  findOrganizationsOf,
  lockOrganizationsOf,
  type OrganizationOfPerson,
} from '../organizations/closed-organization.ts';
import { useAccountToken } from '../people/account-tokens.ts';
import { createRecoveryToken, markAccountDeleted } from '../people/deleted-account.ts';
import { requireCurrentPassword } from '../people/require-current-password.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import type { SignInThrottle } from '../people/sign-in-throttle.ts';
import { hasSecondFactor, startSession } from '../people/start-session.ts';
import { findStaffRole } from '../staff/staff-roles.ts';
import { buildPurgeStart } from './purge-start.ts';
import { type CreatedDeletion, createDeletion } from './recoverable-deletion.ts';
import type { RestoreDeleted } from './restore-account.ts';

export type RecoveryProof = { token: string } | { email: string; password: string };

export interface DeletionPeriod {
  deletedAt: Date;
  recoverableUntil: Date;
}

export interface AccountDeletionOptions {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
  notifications: PersonNotificationService;
  throttle: SignInThrottle;
  passwordHashing: PasswordHashing;
  restoreDeleted: RestoreDeleted;
  /** Throws `conflict` if a subscription has to be canceled first. */
  requireDeletable(db: Db, organizationIds: readonly string[]): Promise<void>;
}

export type AccountDeletionService = ReturnType<typeof createAccountDeletionService>;

export function createAccountDeletionService(options: AccountDeletionOptions) {
  const { database, outbox, notifications, throttle, passwordHashing, restoreDeleted, requireDeletable } =
    options;
  return {
    /**
     * Deletes the person's account, and closes the organizations whose only member they are. Both can be recovered for 30
     * days; then a workflow purges them.
     *
     * @param currentPassword undefined requires a sign-in within the last ten minutes.
     * @throws AppError `conflict` if they are staff of the service, the last owner of an organization with other members, or
     * the last owner who could repair an enforced single sign-on, or if an organization that would be closed pays for a
     * subscription; `invalid_credentials`; `session_expired`.
     */
    async delete(person: Person, currentPassword: string | undefined): Promise<DeletionPeriod> {
      if (currentPassword === undefined) requireFreshLogin(person);
      else await requireCurrentPassword(options, person, currentPassword);
      return database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        // Locks the user first, as changes by staff do, who may give the user a role or suspend them at the same time.
        const user = await db
          .selectFrom('users')
          .select('email')
          .where('id', '=', person.userId)
          .forNoKeyUpdate()
          .executeTakeFirst();
        await requireNoStaff(db, person.userId);
        await lockOrganizationsOf(db, person.userId);
        const organizations = await findOrganizationsOf(db, person.userId);
        requireOtherOwners(organizations);
        const abandoned = organizations.filter(({ otherMembers }) => otherMembers === 0);
        await requireDeletable(
          db,
          abandoned.map(({ id }) => id),
        );
        const deletedAt = new Date();
        await recordPersonAudit(db, person, { action: 'user.deleted' });
        await markAccountDeleted(db, person.userId, deletedAt);
        for (const { id, isOwner, otherMembers } of organizations)
          if (isOwner && otherMembers > 0) await requireBreakGlassOwner(db, id);
        const account = await createDeletion(db, {
          kind: 'account',
          subjectId: person.userId,
          deletedBy: person.userId,
          deletedAt,
        });
        const closed = await closeAll(db, person, abandoned, account, deletedAt);
        await notifications.notify<'account-deleted', 'token'>(transaction, {
          userId: person.userId,
          email: user?.email ?? '',
          template: 'account-deleted',
          params: {
            at: formatUtc(deletedAt),
            ip: person.ip,
            recoverableUntil: formatUtc(account.dueAt),
            organizations: abandoned.map(({ name }) => name),
          },
          secrets: { token: await createRecoveryToken(db, person.userId) },
        });
        startPurges(transaction, [account, ...closed]);
        return { deletedAt, recoverableUntil: account.dueAt };
      });
    },

    /**
     * Recovers an account, and the organizations closed with it, by the mailed token or the password, and signs in. A person
     * with a second factor proves it first; until then nothing is recovered.
     *
     * @throws AppError `invalid_credentials`, also after the recovery period; `conflict` if the account is not deleted.
     */
    async recover(proof: RecoveryProof, client: Client): Promise<SignedIn> {
      const provedId = 'email' in proof ? await checkPassword(proof, client) : undefined;
      return database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        const userId =
          'token' in proof ? (await useAccountToken(db, proof.token, 'recover')).userId : (provedId ?? '');
        if (!(await hasSecondFactor(db, userId))) await restoreDeleted(transaction, userId, client);
        return { userId, signIn: await startSession(db, { userId, method: 'recovery', ...client }) };
      });
    },
  };

  function startPurges(transaction: Transaction, deletions: CreatedDeletion[]): void {
    for (const deletion of deletions)
      outbox.enqueue(transaction, deletion.subjectId, { start: buildPurgeStart(deletion) });
  }

  /** Returns the id of the deleted account. */
  async function checkPassword(
    { email, password }: { email: string; password: string },
    client: Client,
  ): Promise<string> {
    const account = email.toLowerCase();
    const user = await throttle.run({ account, ip: client.ip }, async () => {
      const found = await findUser(database, account);
      const isRight = await passwordHashing.verify(found?.passwordHash ?? null, password, client.ip);
      if (!found || !isRight) throw invalidCredentials();
      return found;
    });
    if (user.isDeleted) return user.id;
    throw new AppError('conflict', {
      detail: 'The account is not deleted.',
      fix: 'Sign in: POST /api/v1/auth/login.',
    });
  }
}

const findUser = (database: Database, email: string) =>
  database.peopleTransaction(({ db }) =>
    db
      .selectFrom('users')
      .select(['id', 'password_hash as passwordHash', sql<boolean>`deleted_at is not null`.as('isDeleted')])
      .where('email', '=', email)
      .where('status', '=', 'active')
      .executeTakeFirst(),
  );

/** Closes the organizations whose only member the person was. They are recovered with the account. */
async function closeAll(
  db: Db,
  person: Person,
  organizations: OrganizationOfPerson[],
  account: CreatedDeletion,
  deletedAt: Date,
): Promise<CreatedDeletion[]> {
  const closed: CreatedDeletion[] = [];
  for (const { id: organizationId } of organizations) {
    await closeOrganization(db, organizationId, deletedAt);
    await recordOrganizationAudit(db, person, { action: 'organization.deleted', organizationId });
    closed.push(
      await createDeletion(db, {
        kind: 'organization',
        subjectId: organizationId,
        deletedBy: person.userId,
        accountDeletionId: account.deletionId,
        deletedAt,
      }),
    );
  }
  return closed;
}

/** Staff cannot end their own role, not even by deleting the account, so that an admin of the service always remains. */
async function requireNoStaff(db: Db, userId: string): Promise<void> {
  if ((await findStaffRole(db, userId)) === null) return;
  throw new AppError('conflict', {
    detail: 'You are staff of this service.',
    fix: 'Let an admin end your staff role first (DELETE /api/v1/admin/staff/{userId}).',
  });
}

function requireOtherOwners(organizations: OrganizationOfPerson[]): void {
  const orphaned = organizations.find(
    ({ isOwner, otherMembers, otherOwners }) => isOwner && otherMembers > 0 && otherOwners === 0,
  );
  if (!orphaned) return;
  throw new AppError('conflict', {
    detail: `You are the last owner of the organization ${orphaned.name} (${orphaned.id}), which has other members.`,
    fix: 'Make another member an owner first (PATCH /api/v1/org/members/{user_id}), or close the organization (DELETE /api/v1/org).',
    extensions: { org_id: orphaned.id },
  });
}
