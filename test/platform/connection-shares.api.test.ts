import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { networkHolder } from '../../platform/concurrency/fair-share.ts';
import { createDatabase, type Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { query } from '../support/query.ts';
import { testStack } from '../support/stack.ts';

const POOL_SIZE = 10;

/** Ways to the connections of the API. Each resolves after `work`. */
const HOLDERS: Record<string, (database: Database, work: () => Promise<void>) => Promise<void>> = {
  'an organization': (database, work) =>
    database.transaction({ organizationId: 'org_greedy' }, ({ db }) => hold(db, work)),
  people: (database, work) => database.peopleTransaction(({ db }) => hold(db, work)),
  staff: (database, work) => database.staffTransaction({ requestId: 'req_1' }, ({ db }) => hold(db, work)),
  'one network': (database, work) => database.inShareOf(networkHolder('192.0.2.1'), (db) => hold(db, work)),
};

async function hold(db: Database['db'], work: () => Promise<void>): Promise<void> {
  await query({ db }, sql`select 1`);
  await work();
}

/** What must find a connection meanwhile. */
const OTHERS: Record<string, (database: Database) => Promise<unknown>> = {
  'another organization': (database) =>
    database.read({ organizationId: newId('organization') }, (reader) => query(reader, sql`select 1`)),
  people: (database) => database.peopleTransaction((transaction) => query(transaction, sql`select 1`)),
  staff: (database) =>
    database.staffTransaction({ requestId: 'req_2' }, (transaction) => query(transaction, sql`select 1`)),
  'another network': (database) =>
    database.inShareOf(networkHolder('198.51.100.1'), (db) => query({ db }, sql`select 1`)),
  'the service itself': (database) => database.ping(),
};

const cases = Object.keys(HOLDERS).flatMap((holder) =>
  Object.keys(OTHERS)
    .filter((other) => other !== holder)
    .map((other) => [holder, other] as const),
);

test.each(cases)('%s cannot take every connection from %s', async (holder, other) => {
  const database = createDatabase({ url: testStack().postgres.apiUrl, poolSize: POOL_SIZE });
  const { promise: end, resolve } = Promise.withResolvers<void>();
  const held = Array.from({ length: 5 * POOL_SIZE }, () => HOLDERS[holder]?.(database, () => end));
  await expect(OTHERS[other]?.(database)).resolves.not.toThrow();
  resolve();
  await Promise.all(held);
  await database.close();
});
