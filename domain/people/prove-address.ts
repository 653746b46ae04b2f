import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import { toDb } from '../../platform/database/bridge.ts';
import type { Db } from '../../platform/database/tables.ts';

/** Voids pending sign-ups with an address, whose owner has just proved it: others may have begun them. */
export async function voidSignUps(connection: Db | EntityManager, email: string): Promise<void> {
  await toDb(connection)
    .updateTable('sign_ups')
    .set({ used_at: sql<Date>`now()` })
    .where('email', '=', email)
    .where('used_at', 'is', null)
    .execute();
}

/** Records that a person has proved the address of their account. */
export async function markAddressVerified(connection: Db | EntityManager, userId: string): Promise<void> {
  await toDb(connection)
    .updateTable('users')
    .set({ email_verified_at: sql<Date>`coalesce(email_verified_at, now())` })
    .where('id', '=', userId)
    .execute();
}
