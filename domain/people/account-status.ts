import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

/** Suspends or reinstates an account, in the caller's transaction. @returns false if it has the status already. */
export async function setAccountStatus(
  em: EntityManager,
  userId: string,
  status: 'active' | 'suspended',
): Promise<boolean> {
  const changed = await em.execute<object[]>(sql`
    update users set status = ${status}, updated_at = now() where id = ${userId} and status <> ${status} returning id`);
  return changed.length > 0;
}

/** Removes every second factor, passkey and recovery code of a person, in the caller's transaction. Returns their number. */
export async function removeFactors(em: EntityManager, userId: string): Promise<number> {
  await em.execute(sql`delete from mfa_recovery_codes where user_id = ${userId}`);
  const removed = await em.execute<object[]>(
    sql`delete from mfa_enrollments where user_id = ${userId} returning id`,
  );
  return removed.length;
}
