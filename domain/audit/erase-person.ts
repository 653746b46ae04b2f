import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

/**
 * Removes the client addresses of a purged person from the audit logs of all organizations. The entries keep the person's
 * id; names are not stored in them. Returns the number of changed entries. For workers.
 */
export async function erasePersonFromAudit(em: EntityManager, userId: string): Promise<number> {
  const erased = await em.execute<object[]>(sql`
    update audit_entries set ip = null
    where actor_kind = 'user' and actor_id = ${userId} and ip is not null returning id`);
  return erased.length;
}
