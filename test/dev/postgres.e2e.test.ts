import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { findFreePort } from '../../dev/stack/ports.ts';
import { type Postgres, startPostgres } from '../../dev/stack/postgres.ts';
import { dropLogin, migrate, UnknownMigrationsError } from '../../workers/migrate.ts';
import { testEnvironment } from '../support/test-app.ts';

let folder: string;
let port: number;
let postgres: Postgres;

const start = () =>
  startPostgres({
    dataDir: join(folder, 'data'),
    port,
    password: 'it is "secret"',
    logFile: join(folder, 'postgres.log'),
    log: () => undefined,
  });

async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postgres-test-'));
  chmodSync(folder, 0o755);
  port = await findFreePort();
  postgres = await start();
  await postgres.ensureDatabase('service');
}, 60_000);

afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('uses UTF-8 in the C locale, is durable, and listens only on the loopback interface', async () => {
  const [settings] = await query(
    postgres.url('service'),
    `select current_setting('server_encoding') as encoding, current_setting('listen_addresses') as addresses,
       current_setting('fsync') as fsync, datcollate as collation
     from pg_database where datname = 'service'`,
  );
  expect(settings).toEqual({ encoding: 'UTF8', addresses: '127.0.0.1', fsync: 'on', collation: 'C' });
});

test('keeps its data after a crash and stops a server that an earlier start left running', async () => {
  await query(postgres.url('service'), 'create table kept as select 1 as n');
  await postgres.kill();
  expect(await postgres.exited).toBe('ended by SIGKILL');
  const leftBehind = await start();
  postgres = await start();
  expect(await leftBehind.exited).toBe('ended with status 0');
  expect(await query(postgres.url('service'), 'select n from kept')).toEqual([{ n: 1 }]);
}, 60_000);

test('applies migrations once when two run concurrently, and gives logins their role and a new password', async () => {
  await postgres.ensureDatabase('migrated');
  const login = (user: string, password: string) => postgres.url('migrated', { user, password });
  const options = {
    migrationUrl: postgres.url('migrated'),
    apiUrl: login('an api', "o'p/q:@"),
    workerUrl: login('a worker', 'w'),
  };
  const outcomes = await Promise.all([migrate(options), migrate(options)]);
  expect(outcomes.map(({ applied }) => applied.length > 0).toSorted()).toEqual([false, true]);
  const roles = await query(
    options.apiUrl,
    `select pg_has_role('agent_email_api', 'usage') as api, pg_has_role('agent_email_worker', 'usage') as worker`,
  );
  expect(roles).toEqual([{ api: true, worker: false }]);
  const changed = { ...options, apiUrl: login('an api', 'another') };
  expect(await migrate(changed)).toEqual({ applied: [], isRestored: false });
  await expect(query(changed.apiUrl, 'select 1')).resolves.toHaveLength(1);
  await expect(query(options.apiUrl, 'select 1')).rejects.toThrow('password authentication failed');
}, 60_000);

test('replaces a login without a gap: the second one works beside the first, which is then removed', async () => {
  await postgres.ensureDatabase('migrated');
  const login = (user: string) => postgres.url('migrated', { user, password: 'x' });
  const options = {
    migrationUrl: postgres.url('migrated'),
    apiUrl: login('api_1'),
    workerUrl: login('work_1'),
  };
  await migrate(options);
  const replaced = { ...options, apiUrl: login('api_2') };
  await migrate(replaced);
  const countInboxes = 'select count(*)::int as count from inboxes';
  for (const url of [options.apiUrl, replaced.apiUrl])
    expect(await query(url, countInboxes)).toEqual([{ count: 0 }]);
  await expect(dropLogin(replaced, 'api_2')).rejects.toThrow('The login api_2 is configured');
  await expect(dropLogin(replaced, 'postgres')).rejects.toThrow('The login postgres is configured');
  await expect(dropLogin(replaced, 'agent_email_api')).rejects.toThrow('is not a login of this service');
  await dropLogin(replaced, 'api_1');
  await expect(query(options.apiUrl, 'select 1')).rejects.toThrow();
  expect(await query(replaced.apiUrl, countInboxes)).toEqual([{ count: 0 }]);
}, 60_000);

test('changes nothing on a database of another version', async () => {
  await postgres.ensureDatabase('foreign_version');
  const migrationUrl = postgres.url('foreign_version');
  await query(migrationUrl, 'create table mikro_orm_migrations (id serial primary key, name text)');
  await query(
    migrationUrl,
    `insert into mikro_orm_migrations (name) values ('Migration20261121000000'), ('Migration20261121141843_words_of_limits')`,
  );
  const apiUrl = postgres.url('foreign_version', { user: 'never_created', password: 'x' });
  await expect(migrate({ migrationUrl, apiUrl })).rejects.toThrow(UnknownMigrationsError);
  const failed = spawnSync(process.execPath, ['workers/migrate.ts'], {
    cwd: join(import.meta.dirname, '../..'),
    env: testEnvironment(migrationUrl, {
      MIGRATION_DATABASE_URL: migrationUrl,
      API_DATABASE_URL: apiUrl,
    }),
    encoding: 'utf8',
  });
  expect(failed).toMatchObject({
    status: 1,
    stdout: '',
    stderr:
      'Migration failed: The database belongs to another version of the service: it has 2 migration(s) that are unknown to this version (Migration20261121000000). Run the version that created it, or start with an empty database: "npm start -- --reset" deletes the data of the embedded one.\n',
  });
  expect(await query(migrationUrl, `select 1 from pg_tables where schemaname = 'public'`)).toHaveLength(1);
  expect(await query(migrationUrl, `select 1 from pg_roles where rolname = 'never_created'`)).toEqual([]);
}, 60_000);

test('rejects a login that bypasses row-level security', async () => {
  const migrationUrl = postgres.url('migrated');
  await expect(migrate({ migrationUrl, apiUrl: migrationUrl })).rejects.toThrow(
    'API_DATABASE_URL must not use the same user as MIGRATION_DATABASE_URL',
  );
  const both = postgres.url('migrated', { user: 'both', password: 'x' });
  await expect(migrate({ migrationUrl, apiUrl: both, workerUrl: both })).rejects.toThrow(
    'WORKER_DATABASE_URL must not use the same user as API_DATABASE_URL',
  );
  await query(migrationUrl, `create role bypassing login bypassrls password 'x'`);
  const bypassing = postgres.url('migrated', { user: 'bypassing', password: 'x' });
  await expect(migrate({ migrationUrl, apiUrl: bypassing })).rejects.toThrow('bypasses row-level security');
}, 60_000);
