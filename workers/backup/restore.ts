import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../platform/config.ts';
import {
  finishRestoredStorage,
  markRestored,
  recordRestoredStorage,
} from '../../platform/installation/cluster.ts';
import { InstallationError } from '../../platform/installation/installation-error.ts';
import type { RestoredStorage } from '../../platform/installation/restore.entity.ts';
import { createStorage, type Storage } from '../../platform/storage.ts';
import { type MigrateOptions, migrate } from '../migrate.ts';
import { runCommand } from '../run-command.ts';
import { ownerUrl } from './backup.ts';
import { countContents, DUMP_FILE, loadManifest, type Manifest, OBJECTS_FOLDER } from './manifest.ts';
import { type CopiedObjects, requireObjects, restoreObjects } from './objects.ts';
import { runPgTool } from './pg-tools.ts';
import { beginRestore, endRestore, findRestoreStep } from './restore-progress.ts';

const USAGE = `npm run restore -- --from FOLDER [--objects FOLDER | --no-objects]
  --from        folder of the backup
  --objects     folder of the objects (default: objects in the backup)
  --no-objects  the bucket is complete, or was restored by other means
MIGRATION_DATABASE_URL names the database to restore into; it must be empty and is created if it does not exist.
After an interruption, run the same command again.
`;

export interface RestoreOptions extends MigrateOptions {
  folder: string;
  /** Undefined leaves the bucket as it is. */
  objects?: { storage: Storage; folder: string };
}

export interface RestoreResult {
  manifest: Manifest;
  /** Migrations that this version applied to the backup. */
  applied: string[];
  objects: CopiedObjects | null;
}

/**
 * Restores a backup into an empty database of any cluster: roles first, then schema and data, then logins, then objects. No
 * worker takes work from the database until `npm run restore:reconcile`. After an interruption, the same call continues.
 *
 * @throws InstallationError if the folder lacks objects or the database is not empty, and then nothing has changed;
 * if the database differs from the backup afterwards.
 */
export async function restore({ folder, objects, ...logins }: RestoreOptions): Promise<RestoreResult> {
  const manifest = await loadManifest(folder);
  if (objects) await requireObjects(objects.folder, manifest.objects ?? null);
  const url = logins.migrationUrl;
  await ensureDatabase(url);
  const step = await withClient(url, (client) => findRestoreStep(client, manifest));
  if (step === 'all') await restoreDump(url, folder, manifest);
  const applied = step === 'objects' ? [] : await finishDatabase(logins, manifest);
  return { manifest, applied, objects: await finishObjects(url, objects) };
}

async function restoreDump(url: string, folder: string, manifest: Manifest): Promise<void> {
  await withClient(url, async (client) => {
    await beginRestore(client, manifest);
    await createRoles(client, manifest);
  });
  await runPgTool('pg_restore', url, [
    '--no-owner',
    '--exit-on-error',
    '--single-transaction',
    `--dbname=${decodeURIComponent(new URL(url).pathname.slice(1))}`,
    join(folder, DUMP_FILE),
  ]);
}

/** Every step can be repeated. Returns the migrations that this version applied. */
async function finishDatabase(logins: MigrateOptions, manifest: Manifest): Promise<string[]> {
  const url = logins.migrationUrl;
  await withClient(url, async (client) => {
    await markRestored(client, new Date(manifest.createdAt));
    for (const [signature, owner] of Object.entries(manifest.functionOwners))
      await client.query(`alter function ${signature} owner to ${pg.escapeIdentifier(owner)}`);
    await client.query('analyze');
    // An interrupted call may have applied migrations of this version already.
    if (!(await hasLaterMigrations(client, manifest))) await requireSameContents(client, manifest);
  });
  const { applied } = await migrate(logins);
  await withClient(url, async (client) => {
    await client.query('begin');
    await recordRestoredStorage(client, 'comparing');
    await endRestore(client);
    await client.query('commit');
  });
  return applied;
}

/** Records, for `npm run restore:reconcile`, whether the bucket lacked objects: then it may also lack what was stored later. */
async function finishObjects(url: string, objects: RestoreOptions['objects']): Promise<CopiedObjects | null> {
  const record = (storage: RestoredStorage) =>
    withClient(url, (client) => recordRestoredStorage(client, storage));
  if (!objects) {
    await record('untouched');
    return null;
  }
  const copied = await restoreObjects(objects.storage, objects.folder, () => record('copying'));
  await withClient(url, finishRestoredStorage);
  return copied;
}

async function ensureDatabase(url: string): Promise<void> {
  const name = decodeURIComponent(new URL(url).pathname.slice(1));
  const maintenance = Object.assign(new URL(url), { pathname: '/postgres' }).toString();
  await withClient(maintenance, async (client) => {
    const { rows } = await client.query('select from pg_database where datname = $1', [name]);
    if (rows.length > 0) return;
    await client.query(
      `create database ${pg.escapeIdentifier(name)} template template0 encoding 'UTF8' locale 'C'`,
    );
  });
}

/** Policies, grants and owners of functions refer to roles, so a dump cannot be restored without them. */
async function createRoles(client: pg.Client, { roles, memberships }: Manifest): Promise<void> {
  const existing = await client.query<{ role: string }>('select rolname as role from pg_roles');
  const known = new Set(existing.rows.map(({ role }) => role));
  for (const role of roles) {
    if (!known.has(role)) await client.query(`create role ${pg.escapeIdentifier(role)} nologin`);
    // Only members may make a role the owner of a function.
    await client.query(`grant ${pg.escapeIdentifier(role)} to current_user`);
  }
  for (const { role, member, inherits } of memberships)
    await client.query(
      `grant ${pg.escapeIdentifier(role)} to ${pg.escapeIdentifier(member)} with inherit ${inherits}, set true`,
    );
}

async function hasLaterMigrations(client: pg.Client, { contents }: Manifest): Promise<boolean> {
  return (await countContents(client)).migrations > contents.migrations;
}

/** Row counts of messages may differ: the service may have run while the backup was made. */
async function requireSameContents(client: pg.Client, { contents }: Manifest): Promise<void> {
  const { messages: _messages, organizations: _organizations, ...schema } = await countContents(client);
  for (const [name, count] of Object.entries(schema)) {
    const expected = contents[name as keyof typeof schema];
    if (count !== expected)
      throw new InstallationError(
        `The restored database has ${count} ${name}, but the backup has ${expected}`,
      );
  }
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      from: { type: 'string' },
      objects: { type: 'string' },
      'no-objects': { type: 'boolean', default: false },
    },
  });
  if (!values.from) throw new InstallationError(`the folder is missing\n${USAGE}`);
  const config = loadConfig();
  const folder = resolve(values.from);
  const storage = createStorage(config);
  try {
    const { manifest, applied, objects } = await restore({
      folder,
      migrationUrl: ownerUrl(config),
      ...(config.API_DATABASE_URL ? { apiUrl: config.API_DATABASE_URL } : {}),
      ...(config.WORKER_DATABASE_URL ? { workerUrl: config.WORKER_DATABASE_URL } : {}),
      ...(values['no-objects']
        ? {}
        : { objects: { storage, folder: resolve(values.objects ?? join(folder, OBJECTS_FOLDER)) } }),
    });
    process.stdout.write(describeRestore(manifest, applied, objects));
  } finally {
    storage.close();
  }
}

function describeRestore(manifest: Manifest, applied: string[], objects: CopiedObjects | null): string {
  const { contents, createdAt } = manifest;
  const lines = [
    `Restored the backup of ${createdAt}: ${contents.tables} tables, ${contents.policies} policies, ${contents.organizations} organizations`,
    ...(applied.length > 0 ? [`Applied ${applied.join(', ')}`] : []),
    ...(objects ? [`${objects.copied} objects copied, ${objects.unchanged} unchanged`] : []),
    'Workers take no work before you run:',
    '  npm run restore:reconcile',
  ];
  return `${lines.join('\n')}\n`;
}

if (import.meta.main) runCommand('restore', main);
