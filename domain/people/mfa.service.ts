import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox, Signer } from '../../platform/crypto.ts';
import { dbOf } from '../../platform/database/bridge.ts';
import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { SealedColumn } from '../../platform/sealed-column.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import { type Person, requireFreshLogin } from '../identity/person.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { requireBreakGlassOwner } from '../organizations/break-glass-owner.ts';
import { lockOrganizationsOf } from '../organizations/closed-organization.ts';
import { addSessionFactor } from '../sessions/session.service.ts';
import {
  type Enrollment,
  findEnrollments,
  informPerson,
  lockPerson,
  requireRoomForFactor,
} from './mfa-enrollments.ts';
import { deleteRecoveryCodes, replaceRecoveryCodes } from './recovery-codes.ts';
import { invalidCredentials } from './start-session.ts';
import { createTotpSetup, findTotpStep, type TotpSetup } from './totp.ts';
import { requireOtherWayIn } from './ways-in.ts';

export interface MfaStatus {
  enrollments: Enrollment[];
  recoveryCodesLeft: number;
}

export interface MfaService {
  status(person: Person): Promise<MfaStatus>;
  /**
   * Begins the enrollment of an authenticator app. It is no factor before {@link confirmTotp}.
   *
   * @throws AppError `session_expired` if the person signed in more than ten minutes ago; `conflict` beyond ten factors.
   */
  setUpTotp(person: Person, name: string | undefined): Promise<TotpSetup & { enrollmentId: string }>;
  /**
   * Completes an enrollment with a first code. The session has proved the factor then, so one that could only enroll
   * becomes a full one.
   *
   * @param input.enrollmentId default: the person's one pending enrollment.
   * @returns recovery codes with the person's first factor, otherwise null.
   * @throws AppError `invalid_credentials` for a wrong code; `not_found`, also an hour after {@link setUpTotp}.
   */
  confirmTotp(
    person: Person,
    input: { enrollmentId?: string | undefined; code: string },
  ): Promise<{ enrollment: Enrollment; recoveryCodes: string[] | null }>;
  /**
   * @throws AppError `session_expired` as above; `policy_violation` for the last factor if an organization requires one;
   * `conflict` for a passkey without which the person could not sign in, and for a factor without which no owner could repair
   * an enforced single sign-on; `not_found`.
   */
  remove(person: Person, enrollmentId: string): Promise<void>;
  /** Replaces the recovery codes. @throws AppError `session_expired`; `conflict` for a person without a factor. */
  regenerateRecoveryCodes(person: Person): Promise<string[]>;
}

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
/** A secret that was shown and never confirmed does not stay usable. */
const IS_SETUP_OPEN = sql`created_at > now() - interval '1 hour'`;

export const totpContext = (enrollmentId: string): string => `mfa:${enrollmentId}`;

export const TOTP_SECRETS: SealedColumn = {
  table: 'mfa_enrollments',
  column: 'secret',
  key: ['id'],
  context: ({ id }) => totpContext(String(id)),
};

export function createMfaService(options: MfaOptions): MfaService {
  const { database, notifications, secretBox, recoverySigner, issuer } = options;

  return {
    status: ({ userId }) =>
      database.peopleTransaction(async ({ em }) => {
        const enrollments = await findEnrollments(em, userId);
        const [codes] = await em.execute<{ left: number }[]>(sql`
          select count(*)::int as left from mfa_recovery_codes where user_id = ${userId} and used_at is null`);
        return { enrollments, recoveryCodesLeft: codes?.left ?? 0 };
      }),

    async setUpTotp(person, requestedName) {
      requireFreshLogin(person);
      const name = requestedName === undefined ? DEFAULT_NAME : requireSafeName(requestedName, '/body/name');
      return database.peopleTransaction(async ({ em }) => {
        const [user] = await em.execute<{ email: string }[]>(
          sql`select email from users where id = ${person.userId} for update`,
        );
        if (!user) throw invalidCredentials();
        requireRoomForFactor(await findEnrollments(em, person.userId));
        // An enrollment that was not completed is replaced; others are deleted by a sweep.
        await em.execute(sql`
          delete from mfa_enrollments where user_id = ${person.userId} and type = 'totp' and confirmed_at is null`);
        const enrollmentId = newId('mfaEnrollment');
        const setup = createTotpSetup({ issuer, label: user.email });
        const sealed = secretBox.seal(setup.secret, totpContext(enrollmentId));
        await em.execute(sql`
          insert into mfa_enrollments (id, user_id, type, name, secret, created_at)
          values (${enrollmentId}, ${person.userId}, 'totp', ${name}, ${sealed}, now())`);
        return { ...setup, enrollmentId };
      });
    },

    confirmTotp: (person, { enrollmentId: requestedId, code }) =>
      database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        await lockPerson(em, person.userId);
        // At most one is pending: a new one replaces it.
        const [pending] = await em.execute<{ id: string; secret: Buffer; name: string }[]>(sql`
          select id, secret, name from mfa_enrollments where user_id = ${person.userId}
            and type = 'totp' and confirmed_at is null and ${IS_SETUP_OPEN} for update`);
        if (!pending || (requestedId ?? pending.id) !== pending.id) throw nothingPending(requestedId);
        const { id: enrollmentId } = pending;
        const step = await findTotpStep(
          secretBox.open(pending.secret, totpContext(enrollmentId)),
          code,
          null,
        );
        if (step === null) throw invalidCredentials();
        const earlier = await findEnrollments(em, person.userId);
        requireRoomForFactor(earlier);
        await em.execute(sql`
          update mfa_enrollments set confirmed_at = now(), last_step = ${step}, last_used_at = now()
          where id = ${enrollmentId}`);
        await addSessionFactor(dbOf(em), person.sessionId, 'totp');
        await recordPersonAudit(em, person, { action: 'user.mfa_added', details: { type: 'totp' } });
        await informPerson(transaction, notifications, person, 'mfa-added', pending.name);
        const enrollment = (await findEnrollments(em, person.userId)).find(({ id }) => id === enrollmentId);
        if (!enrollment) throw notFound('enrollment', enrollmentId);
        const recoveryCodes =
          earlier.length === 0 ? await replaceRecoveryCodes(em, recoverySigner, person.userId) : null;
        return { enrollment, recoveryCodes };
      }),

    remove(person, enrollmentId) {
      requireFreshLogin(person);
      return database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        // First the organizations, as in the deletion of an account.
        await lockOrganizationsOf(em, person.userId);
        await lockPerson(em, person.userId);
        const enrollments = await findEnrollments(em, person.userId);
        const removed = enrollments.find(({ id }) => id === enrollmentId);
        if (!removed) throw notFound('enrollment', enrollmentId);
        if (enrollments.length === 1) {
          await requireNoMfaPolicy(em, person.userId);
          await deleteRecoveryCodes(em, person.userId);
        }
        await em.execute(sql`delete from mfa_enrollments where id = ${enrollmentId}`);
        if (removed.type === 'webauthn') await requireOtherWayIn(em, person.userId);
        await requireBreakGlassOwners(em, person.userId);
        await recordPersonAudit(em, person, { action: 'user.mfa_removed', details: { type: removed.type } });
        await informPerson(transaction, notifications, person, 'mfa-removed', removed.name);
      });
    },

    regenerateRecoveryCodes(person) {
      requireFreshLogin(person);
      return database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        if ((await findEnrollments(em, person.userId)).length === 0)
          throw new AppError('conflict', {
            detail: 'Recovery codes replace a second factor, and you have none.',
            fix: 'Enroll a factor first: POST /api/v1/auth/mfa/totp/setup.',
          });
        await recordPersonAudit(em, person, { action: 'user.recovery_codes_replaced' });
        await informPerson(transaction, notifications, person, 'recovery-codes-replaced', 'Recovery codes');
        return replaceRecoveryCodes(em, recoverySigner, person.userId);
      });
    },
  };
}

function nothingPending(enrollmentId: string | undefined): AppError {
  if (enrollmentId !== undefined) return notFound('enrollment', enrollmentId);
  return new AppError('not_found', {
    detail: 'No authenticator app waits for its first code.',
    fix: 'Begin an enrollment: POST /api/v1/auth/mfa/totp/setup. It ends after an hour.',
  });
}

/** Runs after the removal. An owner must be able to repair the single sign-on that an organization enforces. */
async function requireBreakGlassOwners(em: EntityManager, userId: string): Promise<void> {
  const owned = await em.execute<{ id: string }[]>(sql`
    select o.id from members m join organizations o on o.id = m.org_id and o.deleted_at is null
    where m.user_id = ${userId} and m.role = 'owner' order by o.id`);
  for (const { id } of owned) await requireBreakGlassOwner(em, id);
}

async function requireNoMfaPolicy(em: EntityManager, userId: string): Promise<void> {
  const staff = await em.execute<object[]>(sql`select from staff_members where user_id = ${userId}`);
  if (staff.length > 0)
    throw new AppError('policy_violation', {
      detail: 'Staff of the service need a second factor, and this is your last one.',
      fix: 'Enroll another factor first.',
      extensions: { policy: 'require_mfa' },
    });
  const [organization] = await em.execute<{ name: string }[]>(sql`
    select o.name from members m join organization_policies p on p.org_id = m.org_id and p.require_mfa
      join organizations o on o.id = m.org_id and o.deleted_at is null
    where m.user_id = ${userId} limit 1`);
  if (organization)
    throw new AppError('policy_violation', {
      detail: `The organization ${organization.name} requires a second factor, and this is your last one.`,
      fix: 'Enroll another factor first.',
      extensions: { policy: 'require_mfa' },
    });
}
