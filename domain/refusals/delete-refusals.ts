import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';

const RETENTION_DAYS = 30;
/** Maximum number of rows per sweep. */
const BATCH_SIZE = 5_000;

/** Deletes refusals after 30 days. Returns the number of deleted rows. */
export async function deleteExpiredRefusals(database: Database): Promise<number> {
  const deleted = await database.query<object>(
    sql`delete from refusals where id in (
        select id from refusals where hour < now() - ${RETENTION_DAYS} * interval '1 day' limit ${BATCH_SIZE})
      returning id`,
  );
  return deleted.length;
}

/** Deletes refusals of a purged inbox. Returns the number of deleted rows. */
export async function deleteInboxRefusals(
  database: Database,
  inboxId: string,
  batchSize: number,
): Promise<number> {
  const deleted = await database.query<object>(
    sql`delete from refusals where id in (select id from refusals where inbox_id = ${inboxId} limit ${batchSize}) returning id`,
  );
  return deleted.length;
}
