import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { StaffRole, StaffScope } from './staff-scope.ts';

/**
 * Makes a user staff, or changes their role, in the caller's transaction.
 *
 * @param addedBy user id of the staff member who does it; null for a command of the installation.
 */
export async function setStaffRole(
  db: Db,
  { userId, role, addedBy }: { userId: string; role: StaffRole; addedBy: string | null },
): Promise<void> {
  await db
    .insertInto('staff_members')
    .values({ user_id: userId, role, created_by: addedBy })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ role }))
    .execute();
}

/** Ends the role of a staff member, in the caller's transaction. Their account stays. */
export async function removeStaffMember(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('staff_members').where('user_id', '=', userId).execute();
}

/** The staff role of a user, or null. */
export async function findStaffRole(db: Db, userId: string): Promise<StaffRole | null> {
  const row = await db
    .selectFrom('staff_members')
    .select('role')
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row?.role ?? null;
}

/**
 * Allows a change of a person who is not staff, and changes of other staff by an admin. Serializes changes of staff, and
 * checks each time that the author is still an active admin. If two admins remove each other at the same time, only one
 * succeeds, so an admin always remains.
 *
 * @returns the person's staff role.
 * @throws AppError `conflict` for the caller themselves; `permission_denied`.
 */
export async function requireMayChange(db: Db, staff: StaffScope, userId: string): Promise<StaffRole | null> {
  if (userId === staff.staffId)
    throw new AppError('conflict', {
      detail: 'You cannot do this to yourself.',
      fix: 'Ask another admin. For your own account, use its pages.',
    });
  await lockKey(db, 'staff');
  const role = await findStaffRole(db, userId);
  if (role !== null) await requireActiveAdmin(db, staff);
  return role;
}

/** Whether the person is an admin of the service whose account can sign in. */
async function isActiveAdmin(db: Db, userId: string): Promise<boolean> {
  const admin = await db
    .selectFrom('staff_members as staff')
    .innerJoin('users', 'users.id', 'staff.user_id')
    .select('users.id')
    .where('staff.user_id', '=', userId)
    .where('staff.role', '=', 'admin')
    .where('users.status', '=', 'active')
    .where('users.deleted_at', 'is', null)
    .executeTakeFirst();
  return admin !== undefined;
}

/** The caller holds the lock on changes of staff. @throws AppError `permission_denied`. */
export async function requireActiveAdmin(db: Db, { staffId }: StaffScope): Promise<void> {
  if (!(await isActiveAdmin(db, staffId)))
    throw new AppError('permission_denied', {
      detail: 'Staff can be changed only by another staff member with the role admin.',
      fix: 'Ask an admin of the service.',
    });
}
