import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import { endImpersonationsOf } from '../impersonation/report-end.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import { requireActiveAdmin, requireMayChange } from '../staff/require-admin.ts';
import { removeStaffMember, setStaffRole } from '../staff/set-staff-role.ts';
import type { StaffRole, StaffScope } from '../staff/staff-scope.ts';

export interface StaffMemberSummary {
  userId: string;
  email: string;
  name: string | null;
  role: StaffRole;
  /** Whether the account can sign in. */
  isActive: boolean;
  /** Without a second factor, `/admin` stays closed. */
  factorCount: number;
  lastSeenAt: Date | null;
  /** Null for the command `admin:create`. */
  createdBy: string | null;
  createdAt: Date;
}

/** Admins decide who is staff. No admin changes themselves, so that one is left. Each change is mailed to the person. */
export interface StaffAdministrationService {
  list(staff: StaffScope, page: PageRequest): Promise<Page<StaffMemberSummary>>;
  /**
   * Makes an existing, active account staff.
   *
   * @throws AppError `not_found` for an address without one; `already_exists` for staff.
   */
  add(
    staff: StaffScope,
    input: { email: string; role: StaffRole; note: string },
  ): Promise<StaffMemberSummary>;
  /** Demotion also ends their visits with writing. @throws AppError `not_found`; `conflict` for the caller themselves. */
  changeRole(
    staff: StaffScope,
    userId: string,
    change: { role: StaffRole; note: string },
  ): Promise<StaffMemberSummary>;
  /** Ends the person's access to `/admin` with their next request, and their visits. @throws AppError as {@link changeRole}. */
  remove(staff: StaffScope, userId: string, note: string): Promise<void>;
}

export interface StaffAdministrationOptions {
  database: Database;
  notifications: PersonNotificationService;
}

export function createStaffAdministrationService({
  database,
  notifications,
}: StaffAdministrationOptions): StaffAdministrationService {
  const record = async (
    transaction: Transaction,
    staff: StaffScope,
    change: { userId: string; email: string; from: StaffRole | null; to: StaffRole | null; note: string },
  ): Promise<void> => {
    const { userId, email, from, to, note } = change;
    await recordStaffAudit(transaction.em, staff, {
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
    list: (staff, page) =>
      database.staffTransaction(staff, async ({ em }) => {
        const { after: [after] = [], order, limit } = page;
        const position = order === 'asc' ? sql`s.user_id > ${after}` : sql`s.user_id < ${after}`;
        const rows = await em.execute<SerializedRow<StaffMemberSummary>[]>(sql`
          ${SELECT} where ${after === undefined ? sql`true` : position}
          order by s.user_id ${order === 'asc' ? sql`asc` : sql`desc`} limit ${limit + 1}`);
        return toPage(rows.map(parseMember), limit, ({ userId }) => [userId]);
      }),

    add: (staff, { email: address, role, note }) =>
      database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        await lockKey(em, 'staff');
        await requireActiveAdmin(em, staff);
        const email = address.trim().toLowerCase();
        const [user] = await em.execute<{ id: string }[]>(sql`
          select id from users where email = ${email} and status = 'active' and deleted_at is null for update`);
        if (!user)
          throw new AppError('not_found', {
            detail: 'No active account has this address.',
            fix: 'Let the person sign up first, or run npm run admin:create on the server.',
          });
        if (await findMember(em, user.id))
          throw new AppError('already_exists', {
            detail: 'The person is staff already.',
            fix: 'Change the role: PATCH /api/v1/admin/staff/{userId}.',
          });
        await setStaffRole(em, { userId: user.id, role, addedBy: staff.staffId });
        await record(transaction, staff, { userId: user.id, email, from: null, to: role, note });
        return readMember(em, user.id);
      }),

    changeRole: (staff, userId, { role, note }) =>
      database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        const from = await requireMayChange(em, staff, userId);
        const { email } = await readMember(em, userId);
        if (from === role)
          throw new AppError('conflict', {
            detail: `The person has the role ${role} already.`,
            fix: 'Nothing is left to do.',
          });
        await setStaffRole(em, { userId, role, addedBy: staff.staffId });
        if (role !== 'admin') await endImpersonationsOf(em, userId, { onlyWriting: true });
        await record(transaction, staff, { userId, email, from, to: role, note });
        return readMember(em, userId);
      }),

    remove: (staff, userId, note) =>
      database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        const from = await requireMayChange(em, staff, userId);
        const { email } = await readMember(em, userId);
        await removeStaffMember(em, userId);
        await endImpersonationsOf(em, userId, { onlyWriting: false });
        await record(transaction, staff, { userId, email, from, to: null, note });
      }),
  };
}

const SELECT = sql`
  select s.user_id as "userId", u.email, u.name, s.role, u.status = 'active' and u.deleted_at is null as "isActive",
    (select count(*)::int from mfa_enrollments e where e.user_id = u.id and e.confirmed_at is not null) as "factorCount",
    (select max(x.last_seen_at) from sessions x where x.user_id = u.id) as "lastSeenAt",
    s.created_by as "createdBy", s.created_at as "createdAt"
  from staff_members s join users u on u.id = s.user_id`;

async function findMember(em: EntityManager, userId: string): Promise<StaffMemberSummary | undefined> {
  const [row] = await em.execute<SerializedRow<StaffMemberSummary>[]>(
    sql`${SELECT} where s.user_id = ${userId}`,
  );
  return row && parseMember(row);
}

async function readMember(em: EntityManager, userId: string): Promise<StaffMemberSummary> {
  const member = await findMember(em, userId);
  if (!member) throw notFound('staff member', userId);
  return member;
}

const parseMember = (row: SerializedRow<StaffMemberSummary>): StaffMemberSummary => ({
  ...row,
  lastSeenAt: parseTimestamp(row.lastSeenAt),
  createdAt: new Date(row.createdAt),
});
