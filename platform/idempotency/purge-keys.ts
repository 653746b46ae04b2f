import { sql } from '@mikro-orm/core';
import type { Database } from '../database/database.ts';
import { deleteRows } from '../database/delete-rows.ts';

const BATCH_SIZE = 5_000;

/** Deletes idempotency keys older than 24 hours. Returns the number of deleted rows. */
export function purgeIdempotencyKeys(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from idempotency_keys where id in (
         select id from idempotency_keys where created_at < now() - interval '24 hours' limit ${BATCH_SIZE})`,
  );
}
