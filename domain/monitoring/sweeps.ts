import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';

/** Records that recurring work has succeeded. */
export async function recordSweep(database: Pick<Database, 'query'>, name: string): Promise<void> {
  await database.query(
    sql`insert into sweeps (name, finished_at) values (${name}, now())
      on conflict (name) do update set finished_at = excluded.finished_at`,
  );
}

/** When each recurring work last succeeded, in Unix seconds. */
export function readSweeps(
  database: Pick<Database, 'query'>,
): Promise<{ name: string; finishedAtSeconds: number }[]> {
  return database.query(
    sql`select name, extract(epoch from finished_at)::float8 as "finishedAtSeconds" from sweeps`,
  );
}
