import type { Database } from './database.ts';

/** Runs one DELETE that commits by itself. Limit its rows, so that it never holds locks for long. Returns how many. */
export function deleteRows(database: Database, statement: string, values: unknown[]): Promise<number> {
  return database.autocommit(async (em) => {
    const { affectedRows } = await em.execute<{ affectedRows: number }>(statement, values, 'run');
    return affectedRows;
  });
}
