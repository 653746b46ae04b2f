import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { MikroORM } from '@mikro-orm/postgresql';
import pg from 'pg';
import { entities } from '../domain/entities.ts';
import { ormOptions } from '../platform/database/orm-options.ts';
import { findFreePort } from './stack/ports.ts';
import { startPostgres } from './stack/postgres.ts';

const MIGRATIONS = new URL('../migrations', import.meta.url).pathname;

/**
 * `npm run migration:create -- [name] [--blank]`: applies the existing migrations to an empty PostgreSQL, compares the
 * result with the entities and writes the difference to `migrations/`, for review. `--blank` writes an empty migration,
 * for example to change a SQL function.
 */
async function createMigration(name: string | undefined, blank: boolean): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-email-migration-'));
  // Under root the server runs as another user, who needs access.
  chmodSync(folder, 0o755);
  const postgres = await startPostgres({
    dataDir: join(folder, 'data'),
    port: await findFreePort(),
    password: 'migration',
    logFile: join(folder, 'postgres.log'),
    durable: false,
    log: console.log,
  });
  try {
    await postgres.ensureDatabase('agent_email');
    const file = await writeDifference(postgres.url('agent_email'), name, blank);
    console.log(file === undefined ? 'The migrations match the entities.' : `Wrote migrations/${file}`);
  } finally {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function writeDifference(
  url: string,
  name: string | undefined,
  blank: boolean,
): Promise<string | undefined> {
  const initial = !readdirSync(MIGRATIONS).some((file) => file.endsWith('.ts'));
  // The first migration creates the roles; before it exists, the policies need them anyway.
  if (initial) await createRoles(url);
  const orm = await MikroORM.init({
    ...ormOptions({ url, entities }),
    // Functions are files of migrations/functions; entities do not describe them.
    schemaGenerator: { ignoreRoutines: true },
  });
  try {
    if (!initial) await orm.migrator.up();
    const { fileName } = await orm.migrator.create(undefined, blank, initial, name);
    if (fileName === '') return undefined;
    removeDown(join(MIGRATIONS, fileName));
    const biome = new URL('../node_modules/.bin/biome', import.meta.url).pathname;
    spawnSync(biome, ['check', '--write', join(MIGRATIONS, fileName)], { stdio: 'inherit' });
    return fileName;
  } finally {
    await orm.close(true);
  }
}

/** Migrations only go forward: reverting one would lose data. */
function removeDown(file: string): void {
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace(/\n\n {2}override down\(\)[\s\S]*$/, '\n}\n'));
}

async function createRoles(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(readFileSync(join(MIGRATIONS, 'initial/roles.sql'), 'utf8'));
  await client.end();
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { blank: { type: 'boolean', default: false } },
});
await createMigration(positionals[0], values.blank);
