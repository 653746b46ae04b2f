import { type NotNull, sql } from 'kysely';
import type { SecretBox, Signer } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { SealedColumn } from '../../platform/sealed-column.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import { type Person, requireFreshLogin } from '../identity/person.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { requireBreakGlassOwner } from '../organizations/break-glass-owner.ts';
import { lockOrganizationsOf } from '../organizations/closed-organization.ts';
import { addSessionFactor } from '../sessions/session.service.ts';
import {
  ENROLLMENT_COLUMNS,
  type Enrollment,
  findEnrollments,
  lockPerson,
  notifyOfFactorChange,
  requireFactorBelowLimit,
} from './mfa-enrollments.ts';
import { countRecoveryCodes, deleteRecoveryCodes, replaceRecoveryCodes } from './recovery-codes.ts';
import { requireAnotherSignInMethod } from './sign-in-methods.ts';
import { createTotpSetup, describeTotpSetup, findTotpStep, type TotpSetup, totpContext } from './totp.ts';

export interface MfaStatus {
  enrollments: Enrollment[];
  recoveryCodesLeft: number;
}

export type MfaService = ReturnType<typeof createMfaService>;

export interface MfaOptions {
  database: Database;
  notifications: PersonNotificationService;
  secretBox: SecretBox;
  /** Purpose `recovery-code`. */
  recoverySigner: Signer;
  /** Name of the service in authenticator apps. */
  issuer: string;
}

const DEFAULT_NAME = 'Authenticator app';

export const TOTP_SECRETS: SealedColumn = {
  table: 'mfa_enrollments',
  column: 'secret',
  key: ['id'],
  context: ({ id }) => totpContext(String(id)),
};

export function createMfaService(options: MfaOptions) {
  const { database, notifications, secretBox, recoverySigner, issuer } = options;

  return {
    status: ({ userId }: Person): Promise<MfaStatus> =>
      database.peopleTransaction(async ({ db }) => {
        const enrollments = await findEnrollments(db, userId);
        return { enrollments, recoveryCodesLeft: await countRecoveryCodes(db, userId) };
      }),

    /**
     * Begins the enrollment of an authenticator app. The app counts as a factor only after `confirmTotp`.
     *
     * @throws AppError `session_expired` if the person signed in more than ten minutes ago; `conflict` beyond ten factors.
     */
    async setUpTotp(
      person: Person,
      requestedName: string | undefined,
    ): Promise<TotpSetup & { enrollmentId: string }> {
      requireFreshLogin(person);
      const name = requestedName === undefined ? DEFAULT_NAME : requireSafeName(requestedName, '/body/name');
      return database.peopleTransaction(async ({ db }) => {
        const user = await db
          .selectFrom('users')
          .select('email')
          .where('id', '=', person.userId)
          .forUpdate()
          .executeTakeFirst();
        if (!user) throw invalidCredentials();
        requireFactorBelowLimit(await findEnrollments(db, person.userId));
        const enrollmentId = newId('mfaEnrollment');
        const setup = createTotpSetup({ issuer, label: user.email });
        const secret = secretBox.seal(setup.secret, totpContext(enrollmentId));
        await replacePendingTotp(db, { id: enrollmentId, userId: person.userId, name, secret });
        return { ...setup, enrollmentId };
      });
    },

    /**
     * The enrollment that waits for its first code, to be shown again after a mistyped one. Undefined if it is no longer the
     * pending one.
     *
     * @throws AppError `session_expired` as `setUpTotp`.
     */
    async findPendingTotp(person: Person, enrollmentId: string): Promise<TotpSetup | undefined> {
      requireFreshLogin(person);
      return database.peopleTransaction(async ({ db }) => {
        const pending = await lockPendingTotp(db, person.userId);
        if (pending?.id !== enrollmentId) return undefined;
        const user = await db
          .selectFrom('users')
          .select('email')
          .where('id', '=', person.userId)
          .executeTakeFirstOrThrow(() => notFound('enrollment', enrollmentId));
        const secret = secretBox.open(pending.secret, totpContext(pending.id));
        return describeTotpSetup({ issuer, label: user.email, secret });
      });
    },

    /**
     * Completes an enrollment with a first code. The session has then proved the factor, so a session that could only enroll
     * becomes a full one.
     *
     * @param input.enrollmentId default: the person's pending enrollment.
     * @returns recovery codes with the person's first factor, otherwise null.
     * @throws AppError `invalid_credentials` for a wrong code; `not_found`, also an hour after `setUpTotp`.
     */
    confirmTotp: (
      person: Person,
      { enrollmentId: requestedId, code }: { enrollmentId?: string | undefined; code: string },
    ): Promise<{ enrollment: Enrollment; recoveryCodes: string[] | null }> =>
      database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        const { userId } = person;
        await lockPerson(db, userId);
        const pending = await lockPendingTotp(db, userId);
        if (!pending || (requestedId ?? pending.id) !== pending.id) throw nothingPending(requestedId);
        const { id, name } = pending;
        const step = await findTotpStep(secretBox.open(pending.secret, totpContext(id)), code, null);
        if (step === null) throw invalidCredentials();
        const earlier = await findEnrollments(db, userId);
        requireFactorBelowLimit(earlier);
        const enrollment = await confirmEnrollment(db, id, step);
        await addSessionFactor(db, person.sessionId, 'totp');
        await recordPersonAudit(db, person, { action: 'user.mfa_added', details: { type: 'totp' } });
        await notifyOfFactorChange(transaction, notifications, person, 'mfa-added', name);
        const recoveryCodes =
          earlier.length === 0 ? await replaceRecoveryCodes(db, recoverySigner, userId) : null;
        return { enrollment, recoveryCodes };
      }),

    /**
     * @throws AppError `session_expired` as above; `policy_violation` for the last factor if an organization requires one;
     * `conflict` for a passkey without which the person could not sign in, and for a factor without which no owner could
     * repair an enforced single sign-on; `not_found`.
     */
    remove(person: Person, enrollmentId: string): Promise<void> {
      requireFreshLogin(person);
      return database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        const { userId } = person;
        // Locks the organizations first, as the deletion of an account does.
        await lockOrganizationsOf(db, userId);
        await lockPerson(db, userId);
        const enrollments = await findEnrollments(db, userId);
        const removed = enrollments.find(({ id }) => id === enrollmentId);
        if (!removed) throw notFound('enrollment', enrollmentId);
        if (enrollments.length === 1) {
          await requireNoMfaPolicy(db, userId);
          await deleteRecoveryCodes(db, userId);
        }
        await db.deleteFrom('mfa_enrollments').where('id', '=', enrollmentId).execute();
        if (removed.type === 'webauthn') await requireAnotherSignInMethod(db, userId);
        await requireBreakGlassOwners(db, userId);
        await recordPersonAudit(db, person, { action: 'user.mfa_removed', details: { type: removed.type } });
        await notifyOfFactorChange(transaction, notifications, person, 'mfa-removed', removed.name);
      });
    },

    /** Replaces the recovery codes. @throws AppError `session_expired`; `conflict` for a person without a factor. */
    regenerateRecoveryCodes(person: Person): Promise<string[]> {
      requireFreshLogin(person);
      return database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        if ((await findEnrollments(db, person.userId)).length === 0)
          throw new AppError('conflict', {
            detail: 'Recovery codes replace a second factor, and you have none.',
            fix: 'Enroll a factor first: POST /api/v1/auth/mfa/totp/setup.',
          });
        await recordPersonAudit(db, person, { action: 'user.recovery_codes_replaced' });
        await notifyOfFactorChange(
          transaction,
          notifications,
          person,
          'recovery-codes-replaced',
          'Recovery codes',
        );
        return replaceRecoveryCodes(db, recoverySigner, person.userId);
      });
    },
  };
}

/** Replaces an enrollment that was not completed. A sweep deletes old ones. */
async function replacePendingTotp(
  db: Db,
  { id, userId, name, secret }: { id: string; userId: string; name: string; secret: Buffer },
): Promise<void> {
  await db
    .deleteFrom('mfa_enrollments')
    .where('user_id', '=', userId)
    .where('type', '=', 'totp')
    .where('confirmed_at', 'is', null)
    .execute();
  await db
    .insertInto('mfa_enrollments')
    .values({ id, user_id: userId, type: 'totp', name, secret })
    .execute();
}

/** A person has at most one pending enrollment: a new one replaces it. It can be confirmed for an hour. */
function lockPendingTotp(db: Db, userId: string) {
  return db
    .selectFrom('mfa_enrollments')
    .select(['id', 'secret', 'name'])
    .where('user_id', '=', userId)
    .where('type', '=', 'totp')
    .where('secret', 'is not', null)
    .where('confirmed_at', 'is', null)
    .where('created_at', '>', sql<Date>`now() - interval '1 hour'`)
    .forUpdate()
    .$narrowType<{ secret: NotNull }>()
    .executeTakeFirst();
}

async function confirmEnrollment(db: Db, id: string, step: number): Promise<Enrollment> {
  const [enrollment] = await db
    .updateTable('mfa_enrollments')
    .set({ confirmed_at: sql<Date>`now()`, last_step: step, last_used_at: sql<Date>`now()` })
    .where('id', '=', id)
    .returning(ENROLLMENT_COLUMNS)
    .execute();
  if (!enrollment) throw notFound('enrollment', id);
  return enrollment;
}

function nothingPending(enrollmentId: string | undefined): AppError {
  if (enrollmentId !== undefined) return notFound('enrollment', enrollmentId);
  return new AppError('not_found', {
    detail: 'No authenticator app waits for its first code.',
    fix: 'Begin an enrollment: POST /api/v1/auth/mfa/totp/setup. It ends after an hour.',
  });
}

/** Call it after the removal. An owner must be able to repair a single sign-on that an organization enforces. */
async function requireBreakGlassOwners(db: Db, userId: string): Promise<void> {
  const owned = await db
    .selectFrom('members')
    .innerJoin('organizations', 'organizations.id', 'members.org_id')
    .select('organizations.id')
    .where('members.user_id', '=', userId)
    .where('members.role', '=', 'owner')
    .where('organizations.deleted_at', 'is', null)
    .orderBy('organizations.id')
    .execute();
  for (const { id } of owned) await requireBreakGlassOwner(db, id);
}

async function requireNoMfaPolicy(db: Db, userId: string): Promise<void> {
  const staff = await db
    .selectFrom('staff_members')
    .select('user_id')
    .where('user_id', '=', userId)
    .executeTakeFirst();
  if (staff)
    throw new AppError('policy_violation', {
      detail: 'Staff of the service need a second factor, and this is your last one.',
      fix: 'Enroll another factor first.',
      extensions: { policy: 'require_mfa' },
    });
  const organization = await db
    .selectFrom('members')
    .innerJoin('organization_policies', 'organization_policies.org_id', 'members.org_id')
    .innerJoin('organizations', 'organizations.id', 'members.org_id')
    .select('organizations.name')
    .where('members.user_id', '=', userId)
    .where('organization_policies.require_mfa', '=', true)
    .where('organizations.deleted_at', 'is', null)
    .limit(1)
    .executeTakeFirst();
  if (organization)
    throw new AppError('policy_violation', {
      detail: `The organization ${organization.name} requires a second factor, and this is your last one.`,
      fix: 'Enroll another factor first.',
      extensions: { policy: 'require_mfa' },
    });
}
