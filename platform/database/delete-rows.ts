import type { Database } from './database.ts';
import type { Sql } from './sql.ts';

/** Runs one DELETE that commits by itself. Limit its rows to keep its locks short. Returns the number of deleted rows. */
export function deleteRows(database: Database, statement: Sql): Promise<number> {
  return database.autocommit(async (em) => {
    const { affectedRows } = await em.execute<{ affectedRows: number }>(statement, [], 'run');
    return affectedRows;
  });
}
