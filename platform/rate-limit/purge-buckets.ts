import { sql } from 'kysely';
import type { Database } from '../database/database.ts';

const BATCH_SIZE = 5_000;

/** Deletes rate buckets unused for a day, because a full bucket needs no row. Returns the number of deleted rows. */
export async function purgeRateBuckets({ db }: Database): Promise<number> {
  const unused = db
    .selectFrom('rate_buckets')
    .select('id')
    .where('refilled_at', '<', sql<Date>`now() - interval '1 day'`)
    .limit(BATCH_SIZE);
  const { numDeletedRows } = await db.deleteFrom('rate_buckets').where('id', 'in', unused).executeTakeFirst();
  return Number(numDeletedRows);
}
