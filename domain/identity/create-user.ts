import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import { UserEntity } from './user.entity.ts';

/** Creates a user in the caller's transaction. Returns the user's id. */
export function createUser(
  em: EntityManager,
  { email, passwordHash }: { email: string; passwordHash: string },
): string {
  const id = newId('user');
  em.persist(em.create(UserEntity, { id, email, name: null, passwordHash }));
  return id;
}
