import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';

/** Voids pending sign-ups with an address, whose owner has just proved it: others may have begun them. */
export async function voidSignUps(db: Db, email: string): Promise<void> {
  await db
    .updateTable('sign_ups')
    .set({ used_at: sql<Date>`now()` })
    .where('email', '=', email)
    .where('used_at', 'is', null)
    .execute();
}

/** Records that a person has proved the address of their account. */
export async function markAddressVerified(db: Db, userId: string): Promise<void> {
  await db
    .updateTable('users')
    .set({ email_verified_at: sql<Date>`coalesce(email_verified_at, now())` })
    .where('id', '=', userId)
    .execute();
}
