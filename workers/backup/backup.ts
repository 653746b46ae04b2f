import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { type Config, loadConfig } from '../../platform/config.ts';
import { InstallationError } from '../../platform/installation/installation-error.ts';
import { createStorage, type Storage } from '../../platform/storage.ts';
import { runCommand } from '../run-command.ts';
import { DUMP_FILE, MANIFEST_FILE, type Manifest, OBJECTS_FOLDER, readManifest } from './manifest.ts';
import { type CopiedObjects, saveObjects } from './objects.ts';
import { runPgTool } from './pg-tools.ts';
import { requireFinishedRestore } from './restore-progress.ts';

const USAGE = `npm run backup -- --to FOLDER [--objects FOLDER | --no-objects]
  --to          new folder for the backup of the database
  --objects     folder that keeps the objects of all backups; only new ones are copied (default: objects in the backup)
  --no-objects  the bucket is backed up by other means
`;

export interface BackupOptions {
  /** Login of the schema's owner. */
  databaseUrl: string;
  /** An empty or new folder, or that of a backup that failed. */
  folder: string;
  /** Undefined leaves out the objects. */
  objects?: { storage: Storage; folder: string };
}

/**
 * Saves roles, schema and data of the database, then the objects, which are then never older than the rows that refer to
 * them. The service may run meanwhile.
 */
export async function backUp({
  databaseUrl,
  folder,
  objects,
}: BackupOptions): Promise<{ manifest: Manifest; objects: CopiedObjects | null }> {
  await mkdir(folder, { recursive: true });
  // An earlier attempt that failed left these, and no manifest.
  const others = (await readdir(folder)).filter((name) => name !== DUMP_FILE && name !== OBJECTS_FOLDER);
  if (others.length > 0) throw new InstallationError(`${folder} is not empty`);
  const described = await describeDatabase(databaseUrl);
  await runPgTool('pg_dump', databaseUrl, ['--format=custom', `--file=${join(folder, DUMP_FILE)}`]);
  const copied = objects ? await saveObjects(objects.storage, objects.folder) : null;
  const manifest = { ...described, objects: copied && copied.copied + copied.unchanged };
  // Written last: a folder without it is no complete backup.
  await writeFile(join(folder, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
  return { manifest, objects: copied };
}

async function describeDatabase(databaseUrl: string): Promise<Omit<Manifest, 'objects'>> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await requireFinishedRestore(client);
    const { rows } = await client.query<{ now: Date }>('select now() as now');
    return await readManifest(client, rows[0]?.now ?? new Date());
  } finally {
    await client.end();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      to: { type: 'string' },
      objects: { type: 'string' },
      'no-objects': { type: 'boolean', default: false },
    },
  });
  if (!values.to) throw new InstallationError(`the folder is missing\n${USAGE}`);
  const config = loadConfig();
  const folder = resolve(values.to);
  const storage = createStorage(config);
  try {
    const { manifest, objects } = await backUp({
      databaseUrl: ownerUrl(config),
      folder,
      ...(values['no-objects']
        ? {}
        : { objects: { storage, folder: resolve(values.objects ?? join(folder, OBJECTS_FOLDER)) } }),
    });
    const copied = objects ? `, ${objects.copied} objects copied, ${objects.unchanged} unchanged` : '';
    process.stdout.write(`Backup of ${manifest.createdAt} in ${folder}${copied}\n`);
  } finally {
    storage.close();
  }
}

export function ownerUrl({ MIGRATION_DATABASE_URL: url }: Config): string {
  if (!url)
    throw new InstallationError('MIGRATION_DATABASE_URL is required: it has the login of the schema owner');
  return url;
}

if (import.meta.main) runCommand('backup', main);
