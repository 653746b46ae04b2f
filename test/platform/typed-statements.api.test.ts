import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { entities } from '../../domain/entities.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { columnOf, columnsOf } from '../../platform/database/columns-of.ts';
import { json } from '../../platform/database/json.ts';
import { createOrganization } from '../support/organizations.ts';
import { useOrm } from '../support/orm.ts';
import { useApiDatabase, useWorkerDatabase } from '../support/resources.ts';
import { testStack } from '../support/stack.ts';

const database = useWorkerDatabase();
const api = useApiDatabase();
const orm = useOrm(() => testStack().postgres.workerUrl);

test('the types of the tables name the columns that the ORM creates', () => {
  const metadata = orm.getMetadata();
  const differences = entities.flatMap((entity) =>
    metadata
      .get(entity.meta.class as never)
      .props.filter(({ name, fieldNames }) => fieldNames?.[0] !== columnOf(entity, name))
      .map(({ name, fieldNames }) => `${entity.meta.tableName}.${name}: ${fieldNames?.[0]}`),
  );
  expect(entities.length).toBeGreaterThan(80);
  expect(differences).toEqual([]);
});

test('columns have the names of properties, and lazy ones are read only if they are named', async () => {
  const read = (lazy: readonly 'htmlBody'[]) =>
    database.db.selectFrom('messages').select(columnsOf(MessageEntity, { lazy })).limit(0).compile().sql;
  expect(read([])).toContain('"messages"."org_id" as "organizationId"');
  expect(read([])).not.toContain('html_body');
  expect(read(['htmlBody'])).toContain('"messages"."html_body" as "htmlBody"');
  expect(read(['htmlBody'])).not.toContain('text_body');
});

test('every JSON column stores lists, text and null as they are', async () => {
  const columns = entities.flatMap((entity) =>
    orm
      .getMetadata()
      .get(entity.meta.class as never)
      .props.filter(({ columnTypes }) => columnTypes?.[0] === 'jsonb')
      .map(({ fieldNames }) => ({ table: entity.meta.tableName, column: fieldNames?.[0] ?? '' })),
  );
  expect(columns.length).toBeGreaterThan(25);
  for (const { table, column } of columns)
    for (const value of [[], ['a'], 'a', { a: [] }, null])
      await database.systemTransaction(async ({ db }) => {
        await sql`create temp table written on commit drop as select ${sql.ref(column)} as value from ${sql.table(table)} limit 0`.execute(
          db,
        );
        await sql`insert into written (value) values (${json(value)})`.execute(db);
        const { rows } = await sql<{ value: unknown; isNull: boolean }>`
          select value, value is null as "isNull" from written`.execute(db);
        expect({ table, column, ...rows[0] }).toEqual({ table, column, value, isNull: value === null });
      });
});

test('only the result of json() can be written to a JSON column', () => {
  const statement = (db: typeof database.db) => {
    // @ts-expect-error: a plain list would be stored as an array of PostgreSQL.
    void db.updateTable('messages').set({ to: [{ email: 'a@b.example' }] });
    // @ts-expect-error: the value has another type.
    void db.updateTable('messages').set({ to: json([{ address: 'a@b.example' }]) });
    return db.updateTable('messages').set({ to: json([{ email: 'a@b.example' }]), spam: null });
  };
  expect(statement(database.db).compile().sql).toContain('"to" = $1::jsonb');
});

test('times are dates, large integers numbers, and dates and intervals text', async () => {
  const { rows } = await sql`
    select '2026-01-02T03:04:05.678Z'::timestamptz as time, array['2026-01-02T03:04:05Z'::timestamptz] as times,
      9007199254740991 as integer, array[1::bigint] as integers, '2026-01-02'::date as date, interval '1 day' as interval,
      count(*) as count, null::timestamptz as nothing, '{"a": [1]}'::jsonb as object, array['a', 'b'] as list`.execute(
    database.db,
  );
  expect(rows).toEqual([
    {
      time: new Date('2026-01-02T03:04:05.678Z'),
      times: [new Date('2026-01-02T03:04:05Z')],
      integer: 9_007_199_254_740_991,
      integers: [1],
      date: '2026-01-02',
      interval: '1 day',
      count: 1,
      nothing: null,
      object: { a: [1] },
      list: ['a', 'b'],
    },
  ]);
  await expect(sql`select 9007199254740992`.execute(database.db)).rejects.toThrow('exceeds 2^53');
});

test('values are bound', async () => {
  const when = new Date('2026-01-02T03:04:05.678Z');
  const { rows } = await sql`
    select ${when}::timestamptz as time, ${Buffer.from([0, 255])}::bytea as bytes, ${['a', `"'\\`]}::text[] as list,
      ${5}::int as number, ${true}::boolean as yes`.execute(database.db);
  expect(rows).toEqual([
    { time: when, bytes: Buffer.from([0, 255]), list: ['a', `"'\\`], number: 5, yes: true },
  ]);
});

test('errors carry a code and no value', async () => {
  const failing = sql`select ${'secretMarker'}::int`.execute(database.db);
  await expect(failing).rejects.toMatchObject({ code: '22P02' });
  const error = await failing.catch((reason: Error) => reason);
  expect(`${JSON.stringify(error)} ${(error as Error).stack}`).not.toContain('secretMarker');
});

test('a commit that PostgreSQL answers with a rollback is an error', async () => {
  const swallowing = database.systemTransaction(async ({ db }) => {
    await sql`select 1 / 0`.execute(db).catch(() => undefined);
  });
  await expect(swallowing).rejects.toThrow('rolled back');
});

test('a savepoint undoes the statements of its own work alone', async () => {
  const { organizationId } = await createOrganization(database);
  const rename = (db: typeof database.db, name: string) =>
    db.updateTable('organizations').set({ name }).where('id', '=', organizationId).execute();
  await database.systemTransaction(async (transaction) => {
    await rename(transaction.db, 'outer');
    const inner = transaction.savepoint(async ({ db }) => {
      await rename(db, 'inner');
      throw new Error('undo');
    });
    await expect(inner).rejects.toThrow('undo');
  });
  const row = await database.db
    .selectFrom('organizations')
    .select('name')
    .where('id', '=', organizationId)
    .executeTakeFirst();
  expect(row).toEqual({ name: 'outer' });
});

test('row-level security shows a transaction only the rows of its organization', async () => {
  const [own, other] = [await createOrganization(database), await createOrganization(database)];
  const find = (organizationId: string) =>
    api.read({ organizationId: own.organizationId }, ({ db }) =>
      db.selectFrom('organizations').select('id').where('id', '=', organizationId).execute(),
    );
  expect(await find(own.organizationId)).toEqual([{ id: own.organizationId }]);
  expect(await find(other.organizationId)).toEqual([]);
  expect(await api.db.selectFrom('organizations').select('id').limit(1).execute()).toEqual([]);
  const writing = api.read({ organizationId: own.organizationId }, ({ db }) =>
    db.updateTable('organizations').set({ name: 'x' }).where('id', '=', own.organizationId).execute(),
  );
  await expect(writing).rejects.toMatchObject({ code: '25006' });
});
