import { sql } from 'kysely';
import type { Db } from './tables.ts';

/** Takes the advisory lock of a key and holds it until the transaction ends. The first part of a key names its use. */
export async function lockKey(db: Db, ...key: [use: string, ...parts: string[]]): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${JSON.stringify(key)}, 0))`.execute(db);
}

/** As {@link lockKey}, but any number of transactions have it together; it excludes only those that hold the whole lock. */
export async function lockKeyShared(db: Db, ...key: [use: string, ...parts: string[]]): Promise<void> {
  await sql`select pg_advisory_xact_lock_shared(hashtextextended(${JSON.stringify(key)}, 0))`.execute(db);
}
