import { readdirSync } from 'node:fs';
import { sql } from 'kysely';
import type { Database } from '../database/database.ts';
import { InstallationError } from './installation-error.ts';

const MIGRATIONS = new URL('../../migrations', import.meta.url);

/** Names of the migrations of this version, oldest first. */
export function listMigrations(): string[] {
  return readdirSync(MIGRATIONS)
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.replace(/\.ts$/, ''))
    .sort();
}

/**
 * A database with later migrations is accepted: during an upgrade, processes of the previous version restart on it.
 *
 * @throws InstallationError if the database lacks migrations of this version.
 */
export async function requireMigratedSchema(database: Pick<Database, 'db'>): Promise<void> {
  const applied = new Set(await readApplied(database));
  const pending = listMigrations().filter((name) => !applied.has(name));
  if (pending.length === 0) return;
  throw new InstallationError(
    `The database lacks ${pending.length} migration(s) of this version (first: ${pending[0]}). Run \`npm run migrate\` before this process starts.`,
  );
}

async function readApplied({ db }: Pick<Database, 'db'>): Promise<string[]> {
  const table = await db
    .selectNoFrom(
      sql<boolean>`coalesce(has_table_privilege(to_regclass('mikro_orm_migrations'), 'select'), false)`.as(
        'exists',
      ),
    )
    .executeTakeFirst();
  if (!table?.exists) return [];
  const rows = await db
    .selectFrom(sql<{ name: string }>`(select name from mikro_orm_migrations)`.as('applied'))
    .select('applied.name')
    .execute();
  return rows.map(({ name }) => name);
}
