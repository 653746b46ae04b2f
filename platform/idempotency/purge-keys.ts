import { sql } from 'kysely';
import type { Database } from '../database/database.ts';

const BATCH_SIZE = 5_000;

/** Deletes idempotency keys older than 24 hours. Returns the number of deleted rows. */
export async function purgeIdempotencyKeys({ db }: Database): Promise<number> {
  const expired = db
    .selectFrom('idempotency_keys')
    .select('id')
    .where('created_at', '<', sql<Date>`now() - interval '24 hours'`)
    .limit(BATCH_SIZE);
  const { numDeletedRows } = await db
    .deleteFrom('idempotency_keys')
    .where('id', 'in', expired)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
