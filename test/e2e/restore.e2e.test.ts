import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { Client } from '@temporalio/client';
import pg from 'pg';
import { findFreePort } from '../../dev/stack/ports.ts';
import { type Postgres, startPostgres } from '../../dev/stack/postgres.ts';
import { startTemporal, type TemporalServer } from '../../dev/stack/temporal.ts';
import { findTemporalCli } from '../../dev/stack/temporal-binaries.ts';
import { RECONCILE_SCHEDULE_ID } from '../../workflows/maintenance/reconcile.contract.ts';
import { RESOLVE_AMBIGUOUS, RETRY_SEND_NOW } from '../../workflows/outbound/send-message.contract.ts';
import { apiClient, type Call } from '../support/client.ts';
import { COMPILED_MODULES } from '../support/compiled-modules.ts';
import { eventually } from '../support/eventually.ts';
import { type IsolatedService, startIsolatedService } from '../support/isolated-service.ts';
import { findPostgresTools } from '../support/postgres-tools.ts';
import { SmtpSink } from '../support/smtp-sink.ts';
import { connectToTemporal } from '../support/temporal-connection.ts';

// Real processes, a second PostgreSQL cluster and a second Temporal server: backup and restore are about all of them.
jest.setTimeout(300_000);
const TIMEOUT_MS = 60_000;
const ROOT = resolve(import.meta.dirname, '../..');
const path = await findPostgresTools();
const testWithTools = path === undefined ? test.skip : test;

let service: IsolatedService;
let relay: SmtpSink;
let call: Call;
let bare: Postgres;
let temporal: TemporalServer;
let directory: string;
let inbox: string;

beforeAll(async () => {
  if (path === undefined) return;
  directory = mkdtempSync(join(tmpdir(), 'agent-email-restore-'));
  chmodSync(directory, 0o755);
  relay = new SmtpSink();
  service = await startIsolatedService({ SMTP_RELAY_PORT: String(await relay.start()) });
  call = apiClient({ base_url: service.baseUrl }, service.apiKey);
  inbox = (await call('POST', '/inboxes', {})).body.id;
});
afterAll(async () => {
  await service?.stop();
  await Promise.all([relay?.stop(), bare?.stop(), temporal?.stop()]);
  if (directory) rmSync(directory, { recursive: true, force: true });
});

async function send(to: string): Promise<string> {
  const { status, body } = await call('POST', `/inboxes/${inbox}/messages`, {
    to: [{ email: to }],
    text_body: 'Once.',
  });
  expect(status).toBe(201);
  return body.id;
}

async function schedule(to: string): Promise<string> {
  const { body } = await call('POST', `/inboxes/${inbox}/drafts`, {
    to: [{ email: to }],
    text_body: 'Later.',
    send_at: new Date(Date.now() + 3_600_000).toISOString(),
  });
  return body.id;
}

const untilStatus = (id: string, status: string) =>
  eventually(async () => expect((await call('GET', `/messages/${id}`)).body.status).toBe(status), TIMEOUT_MS);
const copiesFor = (recipient: string) =>
  relay.mails.filter(({ rcptTo }) => rcptTo.includes(recipient)).length;

/** Runs a command of the service as an operator would, in an environment of settings alone. */
function run(script: string, args: string[], environment: Record<string, string>): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [script, ...args], {
    cwd: ROOT,
    env: { ...COMPILED_MODULES, ...settings(), PATH: path ?? '', ...environment },
    encoding: 'utf8',
  });
}

const settings = () =>
  Object.fromEntries(Object.entries(service.config).map(([name, value]) => [name, String(value)]));

function backUp(name: string, objects = 'objects'): string {
  const folder = join(directory, name);
  const done = run('workers/backup/backup.ts', ['--to', folder, '--objects', join(directory, objects)], {
    MIGRATION_DATABASE_URL: service.ownerDatabaseUrl,
  });
  expect(done).toMatchObject({ status: 0, stderr: '' });
  return folder;
}

interface Target {
  environment: Record<string, string>;
  ownerUrl: string;
}

function targetOf(database: string): Target {
  const login = (user: string) => bare.url(database, { user, password: 'restored' });
  const ownerUrl = bare.url(database);
  const environment = {
    MIGRATION_DATABASE_URL: ownerUrl,
    API_DATABASE_URL: login('restored_api'),
    WORKER_DATABASE_URL: login('restored_worker'),
    DATABASE_URL: login('restored_worker'),
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: 'default',
    INBOUND_SMTP_PORT: '0',
    SUBMISSION_SMTP_PORT: '0',
  };
  return { environment, ownerUrl };
}

const restoreArguments = (folder: string, objects = 'objects') => [
  '--from',
  folder,
  '--objects',
  join(directory, objects),
];

function restoreInto(database: string, folder: string): Target & { stdout: string } {
  const target = targetOf(database);
  const done = run('workers/backup/restore.ts', restoreArguments(folder), target.environment);
  expect(done).toMatchObject({ status: 0, stderr: '' });
  return { ...target, stdout: done.stdout };
}

/** A `pg_restore` that kills the restore before it has done anything, or after its commit. */
function killingPgRestore(when: 'before' | 'after'): string {
  const folder = mkdtempSync(join(directory, 'pg-restore-'));
  const real = join(path?.split(delimiter)[0] ?? '', 'pg_restore');
  const script = when === 'before' ? 'kill -9 $PPID' : `"${real}" "$@"\nkill -9 $PPID`;
  writeFileSync(join(folder, 'pg_restore'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return `${folder}${delimiter}${path}`;
}

/** A bare cluster, and a Temporal server that knows nothing. */
async function startTargets(): Promise<void> {
  bare ??= await startPostgres({
    dataDir: join(directory, 'postgres'),
    port: await findFreePort(),
    password: 'bare',
    logFile: join(directory, 'postgres.log'),
    durable: false,
    log: () => undefined,
  });
  temporal ??= await startEmptyTemporal();
}

/** A Temporal server without a run. */
async function startEmptyTemporal(): Promise<TemporalServer> {
  const executable = await findTemporalCli({
    cacheDir: join(ROOT, '.cache', 'temporal'),
    environment: process.env,
    log: () => undefined,
  });
  return startTemporal({
    executable,
    port: await findFreePort(),
    logFile: join(directory, 'temporal.log'),
  });
}

async function query<Row extends object>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

const statusesOf = async (url: string) =>
  Object.fromEntries(
    (await query<{ id: string; status: string }>(url, 'select id, status from messages')).map(
      ({ id, status }) => [id, status],
    ),
  );

/** Everything about rights: policies, grants, and owners of functions that run with the rights of another role. */
const RIGHTS = `
  select 'policy' as kind, tablename || '.' || policyname as name, array_to_string(roles, ',') || cmd || coalesce(qual, '')
    || coalesce(with_check, '') as value from pg_policies where schemaname = 'public'
  union all select 'grant', table_name || '.' || grantee, string_agg(privilege_type, ',' order by privilege_type)
    from information_schema.role_table_grants where grantee like 'agent\\_email\\_%' group by table_name, grantee
  union all select 'column grant', table_name || '.' || column_name || '.' || grantee,
    string_agg(privilege_type, ',' order by privilege_type)
    from information_schema.column_privileges where grantee like 'agent\\_email\\_%' group by 2
  union all select 'function', oid::regprocedure::text, proowner::regrole::text || prosecdef || coalesce((
      select string_agg(item, ',' order by item) from unnest(proacl::text[]) item where item not like 'postgres=%'), '')
    from pg_proc where pronamespace = 'public'::regnamespace
  union all select 'role', r.rolname || '<' || m.rolname, case when a.inherit_option then 'inherits' else 'may switch' end from pg_auth_members a
    join pg_roles r on r.oid = a.roleid join pg_roles m on m.oid = a.member
    where r.rolname like 'agent\\_email\\_%' and m.rolname like 'agent\\_email\\_%' and not m.rolcanlogin
  order by 1, 2`;

const FILLERS = 2_000;

testWithTools('a backup of another version is refused before anything changes', async () => {
  await startTargets();
  const folder = backUp('of-another-version', 'own-objects');
  const file = join(folder, 'manifest.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8'));
  const { environment } = targetOf('other_version');
  for (const changed of [
    { ...manifest, format: 1 },
    { ...manifest, migrations: ['Migration20261122000000_initial', ...manifest.migrations] },
  ]) {
    writeFileSync(file, JSON.stringify(changed));
    const refused = run('workers/backup/restore.ts', restoreArguments(folder, 'own-objects'), environment);
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('npm start -- --reset') });
  }
  const databases = await query(
    bare.url('postgres'),
    `select from pg_database where datname = 'other_version'`,
  );
  expect(databases).toEqual([]);
});

testWithTools(
  'a restore that is killed at any step continues, and is not reconciled before it is complete',
  async () => {
    relay.refused.set('stuck@people.example', '451 4.7.1 try again later');
    await untilStatus(await send('stuck@people.example'), 'deferred');
    const backup = backUp('to-interrupt', 'own-objects');
    const { createdAt, objects } = JSON.parse(readFileSync(join(backup, 'manifest.json'), 'utf8'));
    // More objects, of other backups, so that their copy takes a while.
    mkdirSync(join(directory, 'own-objects', 'raw'), { recursive: true });
    for (let file = 0; file < FILLERS; file += 1)
      writeFileSync(join(directory, 'own-objects', 'raw', `filler-${file}`), 'x');
    await untilStatus(await send('later-than-backup@people.example'), 'sent');
    const otherBackup = backUp('other');
    await startTargets();
    const { environment, ownerUrl } = targetOf('interrupted');
    const own = { ...environment, S3_BUCKET: 'interrupted' };
    const restore = (more: Record<string, string> = {}) =>
      run('workers/backup/restore.ts', restoreArguments(backup, 'own-objects'), { ...own, ...more });
    const reconcile = () => run('workers/reconcile-restore.ts', [], own);

    expect(restore({ PATH: killingPgRestore('before') }).signal).toBe('SIGKILL');
    expect(restore({ PATH: killingPgRestore('after') }).signal).toBe('SIGKILL');
    const other = run('workers/backup/restore.ts', restoreArguments(otherBackup), own);
    expect(other).toMatchObject({ status: 1, stderr: expect.stringContaining('restore of another backup') });
    const early = run(
      'workers/backup/backup.ts',
      ['--to', join(directory, 'of-interrupted'), '--no-objects'],
      own,
    );
    expect(early).toMatchObject({ status: 1, stderr: expect.stringContaining('Repeat it first') });

    const child = spawn(
      process.execPath,
      ['workers/backup/restore.ts', ...restoreArguments(backup, 'own-objects')],
      {
        cwd: ROOT,
        env: { ...COMPILED_MODULES, ...settings(), PATH: path ?? '', ...own },
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    );
    const ended = once(child, 'exit');
    const storageOf = () => query(ownerUrl, 'select restored_to, storage from restores').catch(() => []);
    const restored_to = new Date(createdAt);
    await eventually(
      async () => expect(await storageOf()).toEqual([{ restored_to, storage: 'copying' }]),
      TIMEOUT_MS,
    );
    child.kill('SIGKILL');
    expect(await ended).toEqual([null, 'SIGKILL']);
    expect(reconcile()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('The restore was interrupted'),
    });

    const completed = restore();
    expect(completed).toMatchObject({ status: 0, stderr: '' });
    const [, copied, unchanged] = /(\d+) objects copied, (\d+) unchanged/.exec(completed.stdout) ?? [];
    expect(Number(copied)).toBeGreaterThan(0);
    expect(Number(copied) + Number(unchanged)).toBe(FILLERS + objects);
    expect(await storageOf()).toEqual([{ restored_to, storage: 'restored' }]);
    expect(restore()).toMatchObject({ status: 1, stderr: expect.stringContaining('is not empty') });

    // A copied bucket lacks what left after the backup, so the absence of an object proves nothing.
    const reconciled = reconcile();
    expect(reconciled).toMatchObject({ status: 0, stderr: '' });
    expect(reconciled.stdout).toContain('"sends_needing_attention": 1');
  },
);

testWithTools(
  'a restore to an earlier point sends nothing again, and one without loss continues all work with a new Temporal',
  async () => {
    // Before the first backup: sent, deferred by the relay, and accepted by the API while no worker runs.
    const sent = await send('sent@people.example');
    await untilStatus(sent, 'sent');
    relay.refused.set('later@people.example', '451 4.7.1 try again later');
    const deferred = await send('later@people.example');
    await untilStatus(deferred, 'deferred');
    const draft = await schedule('scheduled@people.example');
    await service.kill('workers');
    const queued = await send('queued@people.example');
    const earlier = backUp('earlier');

    // After it: both leave, and another message is sent.
    relay.refused.clear();
    await service.start('workers');
    const before = await service.connectToTemporal();
    await before.workflow.getHandle(`send/${deferred}`).signal(RETRY_SEND_NOW);
    await before.connection.close();
    for (const id of [deferred, queued]) await untilStatus(id, 'sent');
    await untilStatus(await send('lost@people.example'), 'sent');

    // The second backup is made when the service is at rest, with one message that waits.
    await service.kill('workers');
    const waiting = await send('waiting@people.example');
    await service.kill('api');
    const latest = backUp('latest');
    const counts = () =>
      ['sent', 'later', 'queued', 'lost', 'waiting'].map((name) => copiesFor(`${name}@people.example`));
    expect(counts()).toEqual([1, 1, 1, 1, 0]);

    await startTargets();

    const wentBack = restoreInto('went_back', earlier);
    expect(wentBack.stdout).toContain(`  npm run restore:reconcile\n`);
    const rights = await query(service.ownerDatabaseUrl, RIGHTS);
    expect(rights.length).toBeGreaterThan(200);
    // What these roles see of every organization, the API sees only while it works as one of them.
    for (const role of ['people', 'staff'])
      expect(rights).toContainEqual({
        kind: 'role',
        name: `agent_email_${role}<agent_email_api`,
        value: 'may switch',
      });
    expect(await query(wentBack.ownerUrl, RIGHTS)).toEqual(rights);
    expect(await query(wentBack.environment.API_DATABASE_URL ?? '', 'select id from messages')).toEqual([]);
    expect(await statusesOf(wentBack.ownerUrl)).toMatchObject({
      [sent]: 'sent',
      [deferred]: 'deferred',
      [queued]: 'queued',
    });

    // Workers wait, then see what the command decided.
    const waitingWorker = service.startScript('workers/all.ts', wentBack.environment);
    const reconciled = run('workers/reconcile-restore.ts', [], wentBack.environment);
    expect(reconciled).toMatchObject({ status: 0, stderr: '' });
    // With the message of the test before.
    expect(reconciled.stdout).toContain('"sends_needing_attention": 3');
    expect(reconciled.stdout).toContain('"schedules_removed": 1');
    await waitingWorker;
    const client = new Client({ connection: await connectToTemporal(temporal.address) });
    const run1 = client.workflow.getHandle(`send/${queued}`);
    await eventually(() => run1.executeUpdate(RESOLVE_AMBIGUOUS, { args: ['sent'] }), TIMEOUT_MS);
    await eventually(
      async () =>
        expect(await statusesOf(wentBack.ownerUrl)).toMatchObject({
          [sent]: 'sent',
          [deferred]: 'needs_attention',
          [queued]: 'sent',
        }),
      TIMEOUT_MS,
    );
    expect(await query(wentBack.ownerUrl, `select send_status from drafts where id = '${draft}'`)).toEqual([
      { send_status: 'draft' },
    ]);
    expect(counts()).toEqual([1, 1, 1, 1, 0]);

    await client.connection.close();
    process.kill(await waitingWorker);
    await temporal.stop();

    // The latest backup lost nothing: what waited is sent, what was scheduled stays so, in runs that did not exist.
    temporal = await startEmptyTemporal();
    const moved = restoreInto('moved', latest);
    const ended = run(
      'workers/reconcile-restore.ts',
      ['--restored-to', new Date().toISOString(), '--nothing-lost'],
      moved.environment,
    );
    expect(ended).toMatchObject({ status: 0, stderr: '' });
    for (const table of ['messages', 'drafts'])
      await query(moved.ownerUrl, `update ${table} set updated_at = now() - interval '1 hour'`);
    await service.startScript('workers/all.ts', moved.environment);
    const fresh = new Client({ connection: await connectToTemporal(temporal.address) });
    await fresh.schedule.getHandle(RECONCILE_SCHEDULE_ID).trigger();
    await eventually(
      async () => expect((await statusesOf(moved.ownerUrl))[waiting]).toBe('sent'),
      TIMEOUT_MS,
    );
    await eventually(
      async () =>
        expect((await fresh.workflow.getHandle(`scheduled/${draft}/1`).describe()).status.name).toBe(
          'RUNNING',
        ),
      TIMEOUT_MS,
    );
    await fresh.connection.close();
    expect(counts()).toEqual([1, 1, 1, 1, 1]);
    await client.connection.close();
  },
);

testWithTools('a restore needs an empty database and a complete backup', () => {
  const folder = join(directory, 'incomplete');
  mkdirSync(folder);
  writeFileSync(join(folder, 'database.dump'), '');
  const incomplete = run('workers/backup/restore.ts', ['--from', folder], {
    MIGRATION_DATABASE_URL: service.ownerDatabaseUrl,
  });
  expect(incomplete.stderr).toContain('has no manifest.json: it is no backup, or the backup was interrupted');
  const repeated = run('workers/backup/backup.ts', ['--to', folder, '--no-objects'], {
    MIGRATION_DATABASE_URL: service.ownerDatabaseUrl,
  });
  expect(repeated).toMatchObject({ status: 0, stdout: expect.stringContaining(`in ${folder}`) });
  const wrongOption = run('workers/retry-outbox.ts', ['--lits'], {});
  expect(wrongOption.status).toBe(1);
  expect(wrongOption.stderr).toMatch(/^outbox:retry failed: Unknown option '--lits'.*\n$/);
  // That backup keeps its objects in a folder of their own.
  const withoutObjects = run('workers/backup/restore.ts', ['--from', join(directory, 'latest')], {
    MIGRATION_DATABASE_URL: service.ownerDatabaseUrl,
  });
  expect(withoutObjects).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Name it with --objects'),
  });
  const objects = ['--objects', join(directory, 'objects')];
  const full = run('workers/backup/restore.ts', ['--from', join(directory, 'latest'), ...objects], {
    MIGRATION_DATABASE_URL: service.ownerDatabaseUrl,
  });
  expect(full).toMatchObject({
    status: 1,
    stderr: expect.stringContaining(
      `The database ${new URL(service.ownerDatabaseUrl).pathname.slice(1)} is not empty.`,
    ),
  });
});

testWithTools('commands and processes say what is wrong with keys, and keys:reencrypt replaces one', () => {
  const other = Buffer.alloc(32, 9).toString('base64');
  const refused = run('workers/maintenance.ts', [], { ENCRYPTION_KEY: other, WORKER_HEALTH_PORT: '0' });
  expect(refused).toMatchObject({
    status: 1,
    stdout: expect.stringMatching(
      /"process":"worker-maintenance".*ENCRYPTION_KEY is wrong or incomplete.*"the process did not start"/,
    ),
  });
  const reencrypted = run('workers/reencrypt-keys.ts', [], {
    ENCRYPTION_KEY: `${other},${service.config.ENCRYPTION_KEY}`,
    MIGRATION_DATABASE_URL: service.ownerDatabaseUrl,
  });
  expect(reencrypted).toMatchObject({ status: 0, stderr: '' });
  expect(reencrypted.stdout).toContain('idempotency_keys.body: ');
  expect(reencrypted.stdout).toMatch(/Everything is encrypted with the key [0-9a-f]{8}\./);
  const before = run('workers/maintenance.ts', [], { WORKER_HEALTH_PORT: '0' });
  expect(before.stdout).toContain('ENCRYPTION_KEY is wrong or incomplete');
});
