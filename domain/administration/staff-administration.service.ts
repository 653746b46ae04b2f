import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import { endImpersonationsOf } from '../impersonation/report-end.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import {
  removeStaffMember,
  requireActiveAdmin,
  requireMayChange,
  setStaffRole,
} from '../staff/staff-roles.ts';
import type { StaffRole, StaffScope } from '../staff/staff-scope.ts';

export interface StaffMemberSummary {
  userId: string;
  email: string;
  name: string | null;
  role: StaffRole;
  /** Whether the account can sign in. */
  isActive: boolean;
  /** Staff without a second factor cannot use `/admin`. */
  factorCount: number;
  lastSeenAt: Date | null;
  /** Null for the command `admin:create`. */
  createdBy: string | null;
  createdAt: Date;
}

export type StaffAdministrationService = ReturnType<typeof createStaffAdministrationService>;

export interface StaffAdministrationOptions {
  database: Database;
  notifications: PersonNotificationService;
}

/**
 * Admins decide who is staff. An admin cannot change their own role, so that one admin always remains. Each change is
 * emailed to the person.
 */
export function createStaffAdministrationService({ database, notifications }: StaffAdministrationOptions) {
  const record = async (
    transaction: Transaction,
    staff: StaffScope,
    change: { userId: string; email: string; from: StaffRole | null; to: StaffRole | null; note: string },
  ): Promise<void> => {
    const { userId, email, from, to, note } = change;
    await recordStaffAudit(transaction.db, staff, {
      action: from === null ? 'staff.added' : to === null ? 'staff.removed' : 'staff.role_changed',
      resourceType: 'user',
      resourceId: userId,
      reason: note,
      details: { from, to },
    });
    await notifications.notify(transaction, {
      userId,
      email,
      template: 'staff-role-changed',
      params: { role: to, at: formatUtc(new Date()) },
    });
  };

  return {
    list: (staff: StaffScope, page: PageRequest): Promise<Page<StaffMemberSummary>> =>
      database.staffTransaction(staff, async ({ db }) => {
        const { after: [after] = [], order, limit } = page;
        const members = await selectMembers(db)
          .$if(after !== undefined, (each) =>
            each.where('s.user_id', order === 'asc' ? '>' : '<', after ?? ''),
          )
          .orderBy('s.user_id', order)
          .limit(limit + 1)
          .execute();
        return toPage(members, limit, ({ userId }) => [userId]);
      }),

    /**
     * Makes a person with an active account a staff member.
     *
     * @throws AppError `not_found` for an address without such an account; `already_exists` for staff.
     */
    add: (
      staff: StaffScope,
      { email: address, role, note }: { email: string; role: StaffRole; note: string },
    ): Promise<StaffMemberSummary> =>
      database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        await lockKey(db, 'staff');
        await requireActiveAdmin(db, staff);
        const email = address.trim().toLowerCase();
        const userId = await lockActiveUser(db, email);
        if (await findMember(db, userId))
          throw new AppError('already_exists', {
            detail: 'The person is already staff.',
            fix: 'Change the role: PATCH /api/v1/admin/staff/{userId}.',
          });
        await setStaffRole(db, { userId, role, addedBy: staff.staffId });
        await record(transaction, staff, { userId, email, from: null, to: role, note });
        return readMember(db, userId);
      }),

    /**
     * Demotion also ends their impersonations that allow writing. @throws AppError `not_found`; `conflict` for the caller
     * themselves.
     */
    changeRole: (
      staff: StaffScope,
      userId: string,
      { role, note }: { role: StaffRole; note: string },
    ): Promise<StaffMemberSummary> =>
      database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        const from = await requireMayChange(db, staff, userId);
        const { email } = await readMember(db, userId);
        if (from === role)
          throw new AppError('conflict', {
            detail: `The person already has the role ${role}.`,
            fix: 'Nothing is left to do.',
          });
        await setStaffRole(db, { userId, role, addedBy: staff.staffId });
        if (role !== 'admin') await endImpersonationsOf(db, userId, { onlyWriting: true });
        await record(transaction, staff, { userId, email, from, to: role, note });
        return readMember(db, userId);
      }),

    /**
     * Ends the person's access to `/admin` with their next request, and their impersonations. @throws AppError as {@link
     * changeRole}.
     */
    remove: (staff: StaffScope, userId: string, note: string): Promise<void> =>
      database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        const from = await requireMayChange(db, staff, userId);
        const { email } = await readMember(db, userId);
        await removeStaffMember(db, userId);
        await endImpersonationsOf(db, userId, { onlyWriting: false });
        await record(transaction, staff, { userId, email, from, to: null, note });
      }),
  };
}

const selectMembers = (db: Db) =>
  db
    .selectFrom('staff_members as s')
    .innerJoin('users as u', 'u.id', 's.user_id')
    .select((eb) => [
      's.user_id as userId',
      'u.email',
      'u.name',
      's.role',
      sql<boolean>`u.status = 'active' and u.deleted_at is null`.as('isActive'),
      eb
        .selectFrom('mfa_enrollments as e')
        .select((each) => each.fn.countAll<number>().as('count'))
        .whereRef('e.user_id', '=', 'u.id')
        .where('e.confirmed_at', 'is not', null)
        .$asScalar()
        .$notNull()
        .as('factorCount'),
      eb
        .selectFrom('sessions as x')
        .select((each) => each.fn.max('x.last_seen_at').as('at'))
        .whereRef('x.user_id', '=', 'u.id')
        .as('lastSeenAt'),
      's.created_by as createdBy',
      's.created_at as createdAt',
    ]);

function findMember(db: Db, userId: string): Promise<StaffMemberSummary | undefined> {
  return selectMembers(db).where('s.user_id', '=', userId).executeTakeFirst();
}

async function readMember(db: Db, userId: string): Promise<StaffMemberSummary> {
  const member = await findMember(db, userId);
  if (!member) throw notFound('staff member', userId);
  return member;
}

/** @throws AppError `not_found`. */
async function lockActiveUser(db: Db, email: string): Promise<string> {
  const user = await db
    .selectFrom('users')
    .select('id')
    .where('email', '=', email)
    .where('status', '=', 'active')
    .where('deleted_at', 'is', null)
    .forUpdate()
    .executeTakeFirst();
  if (user) return user.id;
  throw new AppError('not_found', {
    detail: 'No active account has this address.',
    fix: 'Let the person sign up first, or run npm run admin:create on the server.',
  });
}
