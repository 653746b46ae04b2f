import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createDatabase, type Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import { query } from '../support/query.ts';
import { testStack } from '../support/stack.ts';

/** What a server that is killed, or fails over, does to a transaction. */
const endOwnConnection = sql`select pg_terminate_backend(pg_backend_pid())`;

test.each<[string, (database: Database) => Promise<unknown>]>([
  [
    'a transaction',
    (database) => database.systemTransaction((transaction) => query(transaction, endOwnConnection)),
  ],
  [
    'a transaction that goes on after the failure',
    (database) =>
      database.systemTransaction(async ({ db }) => {
        await query({ db }, endOwnConnection).catch(() => undefined);
        await query({ db }, sql`select 1`);
      }),
  ],
  [
    'a read-only transaction',
    (database) =>
      database.read({ organizationId: newId('organization') }, (reader) => query(reader, endOwnConnection)),
  ],
  ['a statement', (database) => query(database, endOwnConnection)],
])('a connection that breaks in the middle of %s leaves its place in the pool', async (_name, work) => {
  const database = createDatabase({ url: testStack().postgres.workerUrl, poolSize: 2 });
  for (let count = 0; count < 3; count += 1) {
    await expect(work(database)).rejects.toThrow();
    await eventually(() => expect(database.poolUsage()).toMatchObject({ used: 0, waiting: 0 }));
  }
  await database.ping();
  // Also ends a process: closing waits for connections in use.
  await database.close();
});
