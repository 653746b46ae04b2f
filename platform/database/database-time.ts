import { sql } from 'kysely';
import type { Database } from './database.ts';

/** The time of the database, as text of PostgreSQL: a `Date` would lose its microseconds. For comparisons with `now()` in rows. */
export async function readDatabaseTime({ db }: Database): Promise<string> {
  const { time } = await db
    .selectNoFrom(sql<string>`clock_timestamp()::text`.as('time'))
    .executeTakeFirstOrThrow(() => new Error('PostgreSQL returned no time'));
  return time;
}

/**
 * For columns that say from when on a row is due. They keep milliseconds, and PostgreSQL rounds: with `now()` itself, a sweep
 * right after the write may find nothing due for half a millisecond.
 */
export const DUE_NOW = sql<Date>`date_trunc('milliseconds', now())`;
