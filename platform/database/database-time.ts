import { sql } from '@mikro-orm/core';
import type { Database } from './database.ts';

/** The time of the database, as text of PostgreSQL: a `Date` would lose its microseconds. For comparisons with `now()` in rows. */
export async function readDatabaseTime(database: Database): Promise<string> {
  const [row] = await database.query<{ time: string }>(sql`select clock_timestamp()::text as time`);
  if (!row) throw new Error('PostgreSQL returned no time');
  return row.time;
}
