import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

/** For the room `suspensions`, which keeps the status in step with the suspensions that are in force. */
export async function setInboxStatus(
  em: EntityManager,
  id: string,
  status: 'active' | 'suspended',
): Promise<void> {
  await em.execute(sql`
    update inboxes set status = ${status}, updated_at = now() where id = ${id} and status <> ${status}`);
}
