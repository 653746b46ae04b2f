import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { AppError } from '../../platform/errors.ts';
import type { StaffRole, StaffScope } from './staff-scope.ts';

/** The staff role of a user, or null. */
export async function findStaffRole(em: EntityManager, userId: string): Promise<StaffRole | null> {
  const [row] = await em.execute<{ role: StaffRole }[]>(
    sql`select role from staff_members where user_id = ${userId}`,
  );
  return row?.role ?? null;
}

/**
 * Allows a change of a person if they are not staff, or if an admin changes another staff member. Changes of staff wait for
 * each other, and each looks again whether its author is an active admin: of two admins who remove each other at the same
 * time, one stays. So the author of a change is an admin who is left.
 *
 * @returns the person's staff role.
 * @throws AppError `conflict` for the caller themselves; `permission_denied`.
 */
export async function requireMayChange(
  em: EntityManager,
  staff: StaffScope,
  userId: string,
): Promise<StaffRole | null> {
  if (userId === staff.staffId)
    throw new AppError('conflict', {
      detail: 'You cannot do this to yourself.',
      fix: 'Ask another admin. For your own account, use its pages.',
    });
  await lockKey(em, 'staff');
  const role = await findStaffRole(em, userId);
  if (role !== null) await requireActiveAdmin(em, staff);
  return role;
}

/** Whether the person is an admin of the service whose account can sign in. */
export async function isActiveAdmin(em: EntityManager, userId: string): Promise<boolean> {
  const admins = await em.execute<object[]>(sql`
    select from staff_members s join users u on u.id = s.user_id and u.status = 'active' and u.deleted_at is null
    where s.user_id = ${userId} and s.role = 'admin'`);
  return admins.length > 0;
}

/** The caller has locked the staff. @throws AppError `permission_denied`. */
export async function requireActiveAdmin(em: EntityManager, { staffId }: StaffScope): Promise<void> {
  if (!(await isActiveAdmin(em, staffId)))
    throw new AppError('permission_denied', {
      detail: 'Staff can be changed only by another staff member with the role admin.',
      fix: 'Ask an admin of the service.',
    });
}
