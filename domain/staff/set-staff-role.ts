import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { StaffRole } from './staff-scope.ts';

/**
 * Makes a user staff, or changes their role, in the caller's transaction.
 *
 * @param addedBy user id of the staff member who does it; null for a command of the installation.
 */
export async function setStaffRole(
  em: EntityManager,
  { userId, role, addedBy }: { userId: string; role: StaffRole; addedBy: string | null },
): Promise<void> {
  await em.execute(sql`
    insert into staff_members (user_id, role, created_by, created_at) values (${userId}, ${role}, ${addedBy}, now())
    on conflict (user_id) do update set role = excluded.role`);
}

/** Ends the role of a staff member, in the caller's transaction. Their account stays. */
export async function removeStaffMember(em: EntityManager, userId: string): Promise<void> {
  await em.execute(sql`delete from staff_members where user_id = ${userId}`);
}
