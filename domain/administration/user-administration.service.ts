import { sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { AuditAction } from '../audit/audit-actions.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { keepBreakGlassOwners } from '../organizations/break-glass-owner.ts';
import { lockOrganizationsOf } from '../organizations/closed-organization.ts';
import { removeFactors } from '../people/mfa-enrollments.ts';
import { setAccountStatus } from '../people/users.ts';
import { endSessions } from '../sessions/session.service.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import { requireMayChange } from '../staff/staff-roles.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { findUsers, readUser, type UserDetails, type UserFilter, type UserSummary } from './find-users.ts';

export type UserAdministrationService = ReturnType<typeof createUserAdministrationService>;

/** Input of a change that may lock a person out. */
export interface AccessChange {
  note: string;
  /** Whether an organization that enforces single sign-on may be left without an owner who could get in without it. */
  leaveWithoutBreakGlass: boolean;
}

export interface UserAdministrationOptions {
  database: Database;
  notifications: PersonNotificationService;
}

interface PersonChange {
  userId: string;
  note: string;
  /** Recorded in the audit logs. */
  action: AuditAction;
  template: Template;
  /** Whether the person may be the last owner who can get in without single sign-on. */
  mayLockOut?: boolean;
}

const SUSPEND = { action: 'user.suspended', template: 'account-suspended', mayLockOut: true } as const;
const REINSTATE = { action: 'user.reinstated', template: 'account-reinstated' } as const;
const REVOKE_SESSIONS = { action: 'user.sessions_revoked', template: 'sessions-ended-by-staff' } as const;
const RESET_MFA = { action: 'user.mfa_reset', template: 'mfa-reset-by-staff', mayLockOut: true } as const;

type Template = 'account-suspended' | 'account-reinstated' | 'sessions-ended-by-staff' | 'mfa-reset-by-staff';

/**
 * Changes of people's accounts by staff. Each change is recorded in the audit logs of all the person's organizations, and
 * the person gets an email.
 */
export function createUserAdministrationService({ database, notifications }: UserAdministrationOptions) {
  /** Runs a change with its checks, audit entries and email. `work` returns the details of the audit entry. */
  const change = <Result>(
    staff: StaffScope,
    { userId, note, action, template, mayLockOut = false }: PersonChange,
    work: (db: Db) => Promise<{ details: Record<string, unknown>; result: Result }>,
  ): Promise<Result> =>
    database.staffTransaction(staff, async (transaction) => {
      const { db } = transaction;
      // Locks the organizations first, as the deletion of an account does.
      if (mayLockOut) await lockOrganizationsOf(db, userId);
      const person = await lockUser(db, userId);
      await requireMayChange(db, staff, userId);
      const { details, result } = await work(db);
      await recordStaffAudit(db, staff, {
        action,
        resourceType: 'user',
        resourceId: userId,
        organizationIds: await findOrganizationIds(db, userId),
        reason: note,
        details,
      });
      await inform(transaction, person, template);
      return result;
    });

  const inform = async (transaction: Transaction, person: LockedUser, template: Template): Promise<void> => {
    if (person.isDeleted) return;
    await notifications.notify(transaction, {
      userId: person.id,
      email: person.email,
      template,
      params: { at: formatUtc(new Date()) },
    });
  };

  return {
    list: (staff: StaffScope, filter: UserFilter, page: PageRequest): Promise<Page<UserSummary>> =>
      database.staffTransaction(staff, ({ db }) => findUsers(db, filter, page)),

    /** @throws AppError `not_found`. */
    get: (staff: StaffScope, userId: string): Promise<UserDetails> =>
      database.staffTransaction(staff, ({ db }) => readUser(db, userId)),

    /**
     * Ends the sessions and connections of a person, who cannot sign in until {@link reinstate}. Their API keys belong to the
     * organizations and keep working.
     *
     * @throws AppError `not_found`; `conflict` for the caller themselves, a suspended person, or an organization that would
     * be left without a break-glass owner; `permission_denied` for staff, unless the caller is an admin.
     */
    suspend: (
      staff: StaffScope,
      userId: string,
      { note, leaveWithoutBreakGlass: isAccepted }: AccessChange,
    ): Promise<UserDetails> =>
      change(staff, { userId, note, ...SUSPEND }, async (db) => {
        const details = await lockOut(db, { userId, isAccepted }, async () => {
          if (!(await setAccountStatus(db, userId, 'suspended'))) throw hasStatus('suspended already');
          return { sessions_ended: await endSessions(db, userId, null) };
        });
        return { details, result: await readUser(db, userId) };
      }),

    /** @throws AppError as {@link suspend}; `conflict` for a person who is not suspended. */
    reinstate: (staff: StaffScope, userId: string, note: string): Promise<UserDetails> =>
      change(staff, { userId, note, ...REINSTATE }, async (db) => {
        if (!(await setAccountStatus(db, userId, 'active'))) throw hasStatus('not suspended');
        return { details: {}, result: await readUser(db, userId) };
      }),

    /** Ends all sessions and connections of a person. @throws AppError as {@link suspend}. Returns the number of sessions. */
    revokeSessions: (staff: StaffScope, userId: string, note: string): Promise<number> =>
      change(staff, { userId, note, ...REVOKE_SESSIONS }, async (db) => {
        const result = await endSessions(db, userId, null);
        return { details: { sessions_ended: result }, result };
      }),

    /**
     * Removes all second factors, passkeys and recovery codes of a person, and ends their sessions and connections.
     *
     * @throws AppError as {@link suspend}; `conflict` for a person without factors.
     */
    resetMfa: (
      staff: StaffScope,
      userId: string,
      { note, leaveWithoutBreakGlass: isAccepted }: AccessChange,
    ): Promise<UserDetails> =>
      change(staff, { userId, note, ...RESET_MFA }, async (db) => {
        const details = await lockOut(db, { userId, isAccepted }, async () => {
          const removed = await removeFactors(db, userId);
          if (removed === 0) throw hasStatus('without a second factor');
          return { factors_removed: removed, sessions_ended: await endSessions(db, userId, null) };
        });
        return { details, result: await readUser(db, userId) };
      }),
  };
}

/** Runs a change that may lock an owner out. @returns the details of the audit entry. */
async function lockOut(
  db: Db,
  { userId, isAccepted }: { userId: string; isAccepted: boolean },
  work: () => Promise<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const owned = await db
    .selectFrom('members')
    .select('org_id as id')
    .where('user_id', '=', userId)
    .where('role', '=', 'owner')
    .execute();
  const organizationIds = owned.map(({ id }) => id);
  const { result, left } = await keepBreakGlassOwners(db, { organizationIds, isAccepted }, work);
  return left.length === 0 ? result : { ...result, left_without_break_glass: left };
}

interface LockedUser {
  id: string;
  email: string;
  isDeleted: boolean;
}

function lockUser(db: Db, userId: string): Promise<LockedUser> {
  return db
    .selectFrom('users')
    .select(['id', 'email', sql<boolean>`deleted_at is not null`.as('isDeleted')])
    .where('id', '=', userId)
    .forUpdate()
    .executeTakeFirstOrThrow(() => notFound('user', userId));
}

async function findOrganizationIds(db: Db, userId: string): Promise<string[]> {
  const memberships = await db
    .selectFrom('members')
    .select('org_id as id')
    .where('user_id', '=', userId)
    .orderBy('org_id')
    .execute();
  return memberships.map(({ id }) => id);
}

function hasStatus(status: string): AppError {
  return new AppError('conflict', {
    detail: `The person is ${status}.`,
    fix: 'Read the person again: GET /api/v1/admin/users/{userId}.',
  });
}
