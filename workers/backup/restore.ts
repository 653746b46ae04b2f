import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../platform/config.ts';
import { markRestored } from '../../platform/installation/cluster.ts';
import { InstallationError } from '../../platform/installation/installation-error.ts';
import { createStorage, type Storage } from '../../platform/storage.ts';
import { type MigrateOptions, migrate } from '../migrate.ts';
import { runCommand } from '../run-command.ts';
import { ownerUrl } from './backup.ts';
import { countContents, DUMP_FILE, loadManifest, type Manifest, OBJECTS_FOLDER } from './manifest.ts';
import { type CopiedObjects, requireFolder, restoreObjects } from './objects.ts';
import { runPgTool } from './pg-tools.ts';

const USAGE = `npm run restore -- --from FOLDER [--objects FOLDER | --no-objects]
  --from        folder of the backup
  --objects     folder of the objects (default: objects in the backup)
  --no-objects  the bucket is complete, or was restored by other means
MIGRATION_DATABASE_URL names the database to restore into; it must be empty and is created if it does not exist.
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
 * Restores a backup into an empty database of any cluster: roles first, then schema and data, then logins. Marks the database
 * as restored before a process can connect, so that no worker takes work until `npm run restore:reconcile`.
 *
 * @throws InstallationError if the folder of objects cannot be read or the database is not empty, and then nothing has changed;
 * if the database differs from the backup afterwards.
 */
export async function restore({ folder, objects, ...logins }: RestoreOptions): Promise<RestoreResult> {
  const manifest = await loadManifest(folder);
  if (objects) await requireFolder(objects.folder);
  const url = logins.migrationUrl;
  await ensureDatabase(url);
  await withClient(url, async (client) => {
    await requireEmpty(client);
    await createRoles(client, manifest);
  });
  await runPgTool('pg_restore', url, [
    '--no-owner',
    '--exit-on-error',
    '--single-transaction',
    `--dbname=${decodeURIComponent(new URL(url).pathname.slice(1))}`,
    join(folder, DUMP_FILE),
  ]);
  await withClient(url, async (client) => {
    await markRestored(client, new Date(manifest.createdAt));
    for (const [signature, owner] of Object.entries(manifest.functionOwners))
      await client.query(`alter function ${signature} owner to ${pg.escapeIdentifier(owner)}`);
    await client.query('analyze');
    await requireSameContents(client, manifest);
  });
  const { applied } = await migrate(logins);
  return {
    manifest,
    applied,
    objects: objects ? await restoreObjects(objects.storage, objects.folder) : null,
  };
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

async function requireEmpty(client: pg.Client): Promise<void> {
  const { rows } = await client.query(`select from pg_tables where schemaname = 'public'`);
  if (rows.length > 0)
    throw new InstallationError(
      `The database ${client.database} is not empty. Restore into a new database, and let MIGRATION_DATABASE_URL name it.`,
    );
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
  for (const { role, member } of memberships)
    await client.query(`grant ${pg.escapeIdentifier(role)} to ${pg.escapeIdentifier(member)}`);
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

async function withClient(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
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
    // The bucket lacked objects, so it may also lack what was stored after the backup.
    `  npm run restore:reconcile -- --restored-to ${createdAt}${objects && objects.copied > 0 ? ' --storage-restored' : ''}`,
  ];
  return `${lines.join('\n')}\n`;
}

if (import.meta.main) runCommand('restore', main);
