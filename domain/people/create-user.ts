import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import { UserEntity } from './user.entity.ts';

export interface NewUser {
  /** In lower case. */
  email: string;
  name?: string | null;
  /** Null for a person who signs in only through another provider. */
  passwordHash: string | null;
  emailVerifiedAt?: Date | null;
}

/** Creates a user in the caller's transaction. Returns the user's id. */
export function createUser(
  em: EntityManager,
  { email, name = null, passwordHash, emailVerifiedAt = null }: NewUser,
): string {
  const id = newId('user');
  em.persist(
    em.create(UserEntity, {
      id,
      email,
      name,
      passwordHash,
      emailVerifiedAt,
      avatarUrl: null,
      deletedAt: null,
    }),
  );
  return id;
}
