import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { listSqlFunctions, readSqlFunction } from '../../platform/database/sql-functions.ts';
import { useOrm } from '../support/orm.ts';
import { useIsolatedDatabase } from '../support/resources.ts';
import { testStack } from '../support/stack.ts';
import { useResource } from '../support/use-resource.ts';

const DATABASE_NAME = 'schema_guard';

const isolatedDatabaseUrl = () =>
  Object.assign(new URL(testStack().postgres.ownerUrl), { pathname: `/${DATABASE_NAME}` }).toString();

useIsolatedDatabase(DATABASE_NAME);
const orm = useOrm(isolatedDatabaseUrl);
const client = useResource(
  async () => {
    const connected = new pg.Client({ connectionString: isolatedDatabaseUrl() });
    await connected.connect();
    return connected;
  },
  (connected) => connected.end(),
);

/** Returns the statements that would change the database to match the entities. */
async function findDifferences(): Promise<string[]> {
  const statements = await orm.schema.getUpdateSchemaSQL({ wrap: false });
  // The ORM does not know the functions; another test compares them.
  return statements
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^drop function if exists "\w+"/.test(line));
}

async function readText(statement: string, name: string): Promise<string | undefined> {
  const { rows } = await client.query<{ text: string }>(statement, [name]);
  return rows[0]?.text;
}

/** Runs `work` in a transaction and rolls it back. */
async function withRollback(work: () => Promise<void>): Promise<void> {
  await client.query('begin');
  try {
    await work();
  } finally {
    await client.query('rollback');
  }
}

interface Declared {
  table: string;
  name: string;
  statement: string;
}

function listDeclared(kind: 'indexes' | 'uniques' | 'triggers'): Declared[] {
  return [...orm.getMetadata().getAll().values()].flatMap((entity) =>
    entity[kind].flatMap(({ name, expression }) =>
      typeof expression === 'string'
        ? [{ table: entity.tableName, name: String(name), statement: expression }]
        : [],
    ),
  );
}

describe('a freshly migrated database', () => {
  test('matches the entities', async () => {
    expect(await findDifferences()).toEqual([]);
  });

  test.each([
    ['a table', 'create table extra (id text primary key)', 'drop table extra'],
    ['a column', 'alter table inboxes add column extra text', 'alter table inboxes drop column extra'],
    ['an index', 'create index extra on inboxes (username)', 'drop index extra'],
    [
      'a unique constraint',
      'alter table inboxes add constraint extra unique (id, email)',
      'alter table inboxes drop constraint extra',
    ],
    [
      'a check',
      `alter table inboxes add constraint extra check (email <> '')`,
      'alter table inboxes drop constraint extra',
    ],
    ['a policy', 'create policy extra on inboxes using (true)', 'drop policy extra on inboxes'],
    [
      'a trigger',
      'create trigger extra after insert on inboxes for each row execute function index_message()',
      'drop trigger extra on inboxes',
    ],
    [
      'a foreign key',
      'alter table dkim_keys add constraint extra foreign key (org_id) references organizations (id)',
      'alter table dkim_keys drop constraint extra',
    ],
  ])('differs from the entities if %s is added', async (_what, alter, undo) => {
    await client.query(alter);
    try {
      expect(await findDifferences()).not.toEqual([]);
    } finally {
      await client.query(undo);
    }
    expect(await findDifferences()).toEqual([]);
  });

  test.each([
    ['a table', 'alter table rate_buckets rename to missing', 'alter table missing rename to rate_buckets'],
    [
      'a column',
      'alter table inboxes rename column purged_at to missing',
      'alter table inboxes rename column missing to purged_at',
    ],
    [
      'an index',
      'alter index inboxes_env_id_id_index rename to missing',
      'alter index missing rename to inboxes_env_id_id_index',
    ],
    [
      'an index with a condition',
      'alter index inboxes_pending_purge_index rename to missing',
      'alter index missing rename to inboxes_pending_purge_index',
    ],
    [
      'a check',
      'alter table attachments rename constraint attachments_one_owner to missing',
      'alter table attachments rename constraint missing to attachments_one_owner',
    ],
    [
      'a policy',
      'alter policy tenant on inboxes rename to missing',
      'alter policy missing on inboxes rename to tenant',
    ],
    [
      'row-level security',
      'alter table inboxes disable row level security',
      'alter table inboxes enable row level security',
    ],
    [
      'a trigger',
      'alter trigger index_message on messages rename to missing',
      'alter trigger missing on messages rename to index_message',
    ],
    [
      'a default',
      'alter table inboxes alter column send_paused drop default',
      'alter table inboxes alter column send_paused set default false',
    ],
    [
      'a not-null constraint',
      'alter table inboxes alter column email drop not null',
      'alter table inboxes alter column email set not null',
    ],
  ])('differs from the entities if %s is missing', async (_what, alter, undo) => {
    await client.query(alter);
    try {
      expect(await findDifferences()).not.toEqual([]);
    } finally {
      await client.query(undo);
    }
    expect(await findDifferences()).toEqual([]);
  });

  // The ORM compares indexes and triggers that are declared as SQL only by name.
  test('has the indexes that the entities declare as SQL', async () => {
    const indexes = [...listDeclared('indexes'), ...listDeclared('uniques')];
    expect(indexes.length).toBeGreaterThan(25);
    const read = (name: string) => readText('select pg_get_indexdef($1::regclass) as text', name);
    await withRollback(async () => {
      for (const { name, statement } of indexes) {
        const present = await read(name);
        await client.query(`drop index "${name}"`);
        await client.query(statement);
        expect(present).toBe(await read(name));
      }
    });
  });

  test('has the triggers that the entities declare', async () => {
    const triggers = listDeclared('triggers');
    const { rows } = await client.query('select tgname as name from pg_trigger where not tgisinternal');
    expect(triggers.map(({ name }) => name).sort()).toEqual(rows.map(({ name }) => name).sort());
    const read = (name: string) =>
      readText('select pg_get_triggerdef(oid) as text from pg_trigger where tgname = $1', name);
    await withRollback(async () => {
      for (const { table, name, statement } of triggers) {
        const present = await read(name);
        await client.query(`drop trigger "${name}" on "${table}"`);
        await client.query(statement);
        expect(present).toBe(await read(name));
      }
    });
  });

  test('has the functions of migrations/functions', async () => {
    const { rows } = await client.query(
      `select proname as name from pg_proc where pronamespace = 'public'::regnamespace order by proname collate "C"`,
    );
    expect(rows.map(({ name }) => name)).toEqual(listSqlFunctions());
    const read = (name: string) =>
      readText('select pg_get_functiondef(oid) as text from pg_proc where proname = $1', name);
    await withRollback(async () => {
      for (const name of listSqlFunctions()) {
        const present = await read(name);
        await client.query(readSqlFunction(name));
        expect(present).toBe(await read(name));
      }
    });
  });
});
