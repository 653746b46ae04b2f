import type { Db } from '../../platform/database/tables.ts';
import type { StaffRole } from './staff-scope.ts';

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
