import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import { toDb } from '../../platform/database/bridge.ts';
import type { Db } from '../../platform/database/tables.ts';

type Status = 'active' | 'suspended';

/** For the room `suspensions`, which keeps the status in step with the suspensions that are in force. */
export async function setOrganizationStatus(
  db: Db | EntityManager,
  id: string,
  status: Status,
): Promise<void> {
  await toDb(db)
    .updateTable('organizations')
    .set({ status, updated_at: sql`now()` })
    .where('id', '=', id)
    .where('status', '<>', status)
    .execute();
}

/** As {@link setOrganizationStatus}. */
export async function setEnvironmentStatus(
  db: Db | EntityManager,
  id: string,
  status: Status,
): Promise<void> {
  await toDb(db)
    .updateTable('environments')
    .set({ status, updated_at: sql`now()` })
    .where('id', '=', id)
    .where('status', '<>', status)
    .execute();
}
