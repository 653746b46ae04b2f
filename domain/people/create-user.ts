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
