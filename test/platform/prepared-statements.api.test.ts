import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import pg from 'pg';
import { nameOfPrepared, PREPARED } from '../../platform/database/prepared.ts';
import { sendStatement } from '../../platform/database/prepared-query.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { useApiDatabase, useWorkerDatabase } from '../support/resources.ts';
import { testStack } from '../support/stack.ts';

const database = useWorkerDatabase();
const api = useApiDatabase();

interface Prepared {
  calls: number;
  statement: string;
}

test('a marked statement is prepared once for its connection', async () => {
  await database.systemTransaction(async ({ db }) => {
    const findTier = (id: string) =>
      db.selectFrom('organizations').select('tier').where('id', '=', id).modifyEnd(PREPARED).execute();
    for (const id of ['org_1', 'org_2', 'org_3']) await findTier(id);
    await db.selectFrom('organizations').select('name').where('id', '=', 'org_1').execute();
    const { rows } = await sql<Prepared>`
      select statement, (generic_plans + custom_plans)::int as calls from pg_prepared_statements
      where statement like '%organizations%' order by statement`.execute(db);
    expect(rows).toEqual([
      { statement: expect.stringMatching(/^select "tier" .* \/\* prepared \*\/$/), calls: 3 },
    ]);
  });
});

test('a prepared statement shows each organization its own rows', async () => {
  const organizations = [await createOrganization(database), await createOrganization(database)];
  const inboxes = await Promise.all(organizations.map((organization) => createInbox(database, organization)));
  // More often than PostgreSQL makes a plan for each value.
  for (let round = 0; round < 8; round += 1)
    for (const [index, { organizationId }] of organizations.entries()) {
      const rows = await api.transaction({ organizationId }, ({ db }) =>
        db.selectFrom('inboxes').select('id').modifyEnd(PREPARED).execute(),
      );
      expect(rows).toEqual([{ id: inboxes[index]?.id }]);
    }
});

test('a text that depends on values prepares a limited number of statements', () => {
  expect(nameOfPrepared('select 1')).toBeUndefined();
  const names = Array.from({ length: 300 }, (_, id) => nameOfPrepared(`select ${id} /* prepared */`));
  expect(new Set(names.filter(Boolean)).size).toBeLessThanOrEqual(100);
  expect(names[299]).toBeUndefined();
  expect(nameOfPrepared('select 0 /* prepared */')).toBe(names[0]);
});

test('the columns of a prepared statement are described once', async () => {
  const client = new pg.Client({ connectionString: testStack().postgres.ownerUrl, pipeline: true });
  await client.connect();
  let descriptions = 0;
  client.connection.on('rowDescription', () => {
    descriptions += 1;
  });
  const text = 'select id, id::text as name, now() as at from generate_series(1, $1::int) as id order by id';
  const run = (count: number) => sendStatement(client, { text, name: 'described' }, [count]);
  expect((await run(0)).rows).toEqual([]);
  expect((await run(2)).rows).toEqual([
    { id: 1, name: '1', at: expect.any(Date) },
    { id: 2, name: '2', at: expect.any(Date) },
  ]);
  const results = await Promise.all([run(1), run(3), run(0)]);
  expect(results.map(({ rowCount, rows }) => [rowCount, rows.length])).toEqual([
    [1, 1],
    [3, 3],
    [0, 0],
  ]);
  expect(results[1]?.fields.map(({ name }) => name)).toEqual(['id', 'name', 'at']);
  expect(descriptions).toBe(1);
  await client.end();
});

test('a prepared statement whose columns have changed fails, and others go on', async () => {
  const client = new pg.Client({ connectionString: testStack().postgres.ownerUrl, pipeline: true });
  await client.connect();
  await client.query('create temporary table changing (a int); insert into changing values (1)');
  const read = () => sendStatement(client, { text: 'select * from changing', name: 'reads' });
  const insert = () =>
    sendStatement(client, { text: 'insert into changing (a) values ($1)', name: 'inserts' }, ['2']);
  expect((await read()).rows).toEqual([{ a: 1 }]);
  expect((await insert()).rowCount).toBe(1);
  await client.query('alter table changing add b text');
  await expect(read()).rejects.toThrow('cached plan must not change result type');
  expect((await insert()).rowCount).toBe(1);
  await expect(
    sendStatement(client, { text: 'insert into changing (a) values ($1)', name: 'inserts' }, ['no number']),
  ).rejects.toMatchObject({ code: '22P02' });
  expect((await insert()).rowCount).toBe(1);
  await client.end();
});
