import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

type Status = 'active' | 'suspended';

/** For the room `suspensions`, which keeps the status in step with the suspensions that are in force. */
export async function setOrganizationStatus(em: EntityManager, id: string, status: Status): Promise<void> {
  await em.execute(sql`
    update organizations set status = ${status}, updated_at = now() where id = ${id} and status <> ${status}`);
}

/** As {@link setOrganizationStatus}. */
export async function setEnvironmentStatus(em: EntityManager, id: string, status: Status): Promise<void> {
  await em.execute(sql`
    update environments set status = ${status}, updated_at = now() where id = ${id} and status <> ${status}`);
}
