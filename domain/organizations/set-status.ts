import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';

type Status = 'active' | 'suspended';

/** For the room `suspensions`, which keeps the status in step with open suspensions. */
export async function setOrganizationStatus(db: Db, id: string, status: Status): Promise<void> {
  await db
    .updateTable('organizations')
    .set({ status, updated_at: sql`now()` })
    .where('id', '=', id)
    .where('status', '<>', status)
    .execute();
}

/** As {@link setOrganizationStatus}. */
export async function setEnvironmentStatus(db: Db, id: string, status: Status): Promise<void> {
  await db
    .updateTable('environments')
    .set({ status, updated_at: sql`now()` })
    .where('id', '=', id)
    .where('status', '<>', status)
    .execute();
}
