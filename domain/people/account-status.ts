import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { deleteRecoveryCodes } from './recovery-codes.ts';

/** Suspends or reinstates an account, in the caller's transaction. @returns false if it has the status already. */
export async function setAccountStatus(
  db: Db,
  userId: string,
  status: 'active' | 'suspended',
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('users')
    .set({ status, updated_at: sql<Date>`now()` })
    .where('id', '=', userId)
    .where('status', '<>', status)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Removes every second factor, passkey and recovery code of a person, in the caller's transaction. Returns their number. */
export async function removeFactors(db: Db, userId: string): Promise<number> {
  await deleteRecoveryCodes(db, userId);
  const { numDeletedRows } = await db
    .deleteFrom('mfa_enrollments')
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
