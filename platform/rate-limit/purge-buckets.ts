import { sql } from '@mikro-orm/core';
import type { Database } from '../database/database.ts';
import { deleteRows } from '../database/delete-rows.ts';

const BATCH_SIZE = 5_000;

/** Deletes rate buckets unused for a day, because a full bucket needs no row. Returns the number of deleted rows. */
export function purgeRateBuckets(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from rate_buckets where id in (
         select id from rate_buckets where refilled_at < now() - interval '1 day' limit ${BATCH_SIZE})`,
  );
}
