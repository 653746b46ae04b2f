import type { RawBuilder } from 'kysely';
import type { Database } from '../../platform/database/database.ts';

/** Runs a statement as text: what tests arrange and look up has no other caller that a typed statement would serve. */
export async function query<Row>({ db }: Pick<Database, 'db'>, statement: RawBuilder<Row>): Promise<Row[]> {
  return (await statement.execute(db)).rows;
}

/** @param statement selects one small column of the rows to count. */
export async function countRows(statement: { execute(): Promise<readonly unknown[]> }): Promise<number> {
  return (await statement.execute()).length;
}
