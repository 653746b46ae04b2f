import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createDatabase } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import { query } from '../support/query.ts';
import { testStack } from '../support/stack.ts';

const scope = { organizationId: newId('organization') };

test('a transaction that cannot begin reports why, and leaves a connection that works', async () => {
  await using database = toDisposable(createDatabase({ url: testStack().postgres.apiUrl, poolSize: 1 }));
  const begun = database.readAsTenant(scope.organizationId, (db) => query({ db }, sql`select 1`));
  await expect(begun).rejects.toThrow(/permission denied to set role/);
  await expect(database.read(scope, ({ db }) => query({ db }, sql`select 1 as one`))).resolves.toEqual([
    { one: 1 },
  ]);
});

test('statements that do not wait for each other see the organization of the transaction, in order', async () => {
  await using database = toDisposable(createDatabase({ url: testStack().postgres.apiUrl, poolSize: 1 }));
  const results = await database.transaction(scope, ({ db }) =>
    Promise.all([
      query({ db }, sql`select current_setting('app.org_id') as org`),
      query({ db }, sql`select set_config('app.step', 'second', true) as step`),
      query({ db }, sql`select current_setting('app.step') as step`),
    ]),
  );
  expect(results).toEqual([[{ org: scope.organizationId }], [{ step: 'second' }], [{ step: 'second' }]]);
});

test('if one of them fails, the transaction rolls back with its error after the others have ended', async () => {
  await using database = toDisposable(createDatabase({ url: testStack().postgres.apiUrl, poolSize: 1 }));
  const failed = database.transaction(scope, ({ db }) =>
    Promise.all([
      query({ db }, sql`select 1 / 0`),
      query({ db }, sql`select pg_sleep(0.05)`),
      query({ db }, sql`select 1`),
    ]),
  );
  await expect(failed).rejects.toThrow(/division by zero/);
  await expect(database.transaction(scope, ({ db }) => query({ db }, sql`select 1 as one`))).resolves.toEqual(
    [{ one: 1 }],
  );
  expect(database.poolUsage()).toMatchObject({ used: 0, waiting: 0 });
});

test('what a use-case reads in several statements is of one moment', async () => {
  await using reader = toDisposable(createDatabase({ url: testStack().postgres.workerUrl, poolSize: 1 }));
  await using writer = toDisposable(createDatabase({ url: testStack().postgres.workerUrl, poolSize: 1 }));
  const snapshot = sql`select pg_current_snapshot()::text as snapshot`;
  const [before, after] = await reader.read(scope, async ({ db }) => {
    const first = await query({ db }, snapshot);
    await writer.systemTransaction((other) => query(other, sql`select pg_current_xact_id()`));
    return [first, await query({ db }, snapshot)];
  });
  expect(after).toEqual(before);
});

test('a read ends before the next statement of its connection', async () => {
  await using database = toDisposable(createDatabase({ url: testStack().postgres.workerUrl, poolSize: 1 }));
  const state = sql<State>`select pg_backend_pid() as pid, current_setting('transaction_read_only') as "isReadOnly",
    current_setting('app.org_id', true) as org, pg_current_snapshot()::text as snapshot`;
  const [during] = await database.read(scope, (reader) => query(reader, state));
  expect(during).toMatchObject({ isReadOnly: 'on', org: scope.organizationId });
  await query(database, sql`select pg_current_xact_id()`);
  const [after] = await query(database, state);
  expect(after).toMatchObject({ pid: during?.pid, isReadOnly: 'off' });
  expect(after?.org || null).toBeNull();
  expect(after?.snapshot).not.toBe(during?.snapshot);
});

test('a read ends by itself if no statement follows, and holds no place in the pool', async () => {
  await using database = toDisposable(createDatabase({ url: testStack().postgres.workerUrl, poolSize: 1 }));
  await using observer = toDisposable(createDatabase({ url: testStack().postgres.workerUrl, poolSize: 1 }));
  const [row] = await database.read(scope, (reader) =>
    query<{ pid: number }>(reader, sql`select pg_backend_pid() as pid`),
  );
  expect(database.poolUsage()).toEqual({ used: 0, idle: 1, waiting: 0 });
  await eventually(async () =>
    expect(await query(observer, sql`select state from pg_stat_activity where pid = ${row?.pid}`)).toEqual([
      { state: 'idle' },
    ]),
  );
});

test('a read whose statement failed unnoticed rolls back', async () => {
  await using database = toDisposable(createDatabase({ url: testStack().postgres.workerUrl, poolSize: 1 }));
  const read = database.read(scope, (reader) => query(reader, sql`select 1 / 0`).catch(() => 'swallowed'));
  await expect(read).rejects.toThrow(/rolled back/);
  await database.ping();
});

interface State {
  pid: number;
  isReadOnly: string;
  org: string | null;
  snapshot: string;
}

const toDisposable = <Closable extends { close(): Promise<void> }>(closable: Closable) =>
  Object.assign(closable, { [Symbol.asyncDispose]: () => closable.close() });
