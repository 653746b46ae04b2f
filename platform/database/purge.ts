import type { Database } from './database.ts';

/** Rows a sweep removes at most from one table, so that it never holds locks for long. */
const BATCH = 5_000;

/**
 * Removes idempotency keys past their 24 h, rate buckets nobody drew from for a day, and outcomes that count against an
 * inbox no more: they came from mail of its last 7 days, and reports come for another 30 at most. Returns how many.
 */
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
    const outcomes = await em.execute<{ affectedRows: number }>(
      `delete from reputation_outcomes where (inbox_id, kind, message_id, position) in (
         select inbox_id, kind, message_id, position from reputation_outcomes
         where created_at < now() - interval '37 days' limit ?)`,
      [BATCH],
      'run',
    );
    return keys.affectedRows + buckets.affectedRows + outcomes.affectedRows;
  });
}
