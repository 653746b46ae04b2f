import type { Database } from './database.ts';

/** Rows a sweep removes at most from one table, so that it never holds locks for long. */
const BATCH = 5_000;

/** Removes idempotency keys past their 24 h and rate buckets nobody drew from for a day. Returns how many. */
export async function purgeExpired(database: Database): Promise<number> {
  return database.systemTransaction(async ({ em }) => {
    const keys = await em.execute<{ affectedRows: number }>(
      `delete from idempotency_keys where id in (
         select id from idempotency_keys where created_at < now() - interval '24 hours' limit ?)`,
      [BATCH],
      'run',
    );
    const buckets = await em.execute<{ affectedRows: number }>(
      `delete from rate_buckets where id in (
         select id from rate_buckets where refilled_at < now() - interval '1 day' limit ?)`,
      [BATCH],
      'run',
    );
    return keys.affectedRows + buckets.affectedRows;
  });
}
