import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';

export interface NewUser {
  /** In lower case. */
  email: string;
  name?: string | null;
  /** Null for a person who signs in only through another provider. */
  passwordHash: string | null;
  emailVerifiedAt?: Date | null;
}

/** Creates a user in the caller's transaction. Returns the user's id. */
export async function createUser(
  db: Db,
  { email, name = null, passwordHash, emailVerifiedAt = null }: NewUser,
): Promise<string> {
  const id = newId('user');
  await db
    .insertInto('users')
    .values({
      id,
      email,
      name,
      password_hash: passwordHash,
      email_verified_at: emailVerifiedAt,
      avatar_url: null,
      deleted_at: null,
    })
    .execute();
  return id;
}

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
