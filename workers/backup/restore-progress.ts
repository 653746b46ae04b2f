import type { Client } from 'pg';
import { InstallationError } from '../../platform/installation/installation-error.ts';
import { UNFINISHED_RESTORE_SCHEMA } from '../../platform/installation/pending-restore.ts';
import type { Manifest } from './manifest.ts';

/**
 * What is left to do of a restore. `all`: nothing was restored. `rest`: schema and data are restored. `objects`: the
 * database is finished. It lacks only objects.
 */
export type RestoreStep = 'all' | 'rest' | 'objects';

const MARKER = `${UNFINISHED_RESTORE_SCHEMA}.backup`;

/**
 * Finds where an interrupted restore of the same backup continues.
 *
 * @throws InstallationError for a database that is not empty for another reason.
 */
export async function findRestoreStep(client: Client, { createdAt }: Manifest): Promise<RestoreStep> {
  const isEmpty = !(await exists(client, `select from pg_tables where schemaname = 'public'`));
  if (await isMarked(client)) {
    if (!(await exists(client, `select from ${MARKER} where created_at = $1`, [createdAt])))
      throw new InstallationError(
        `The restore of another backup into ${client.database} was interrupted. Repeat that one, or restore into a new database.`,
      );
    return isEmpty ? 'all' : 'rest';
  }
  if (isEmpty) return 'all';
  if (await lacksObjects(client, createdAt)) return 'objects';
  throw new InstallationError(
    `The database ${client.database} is not empty. Restore into a new database, and let MIGRATION_DATABASE_URL name it.`,
  );
}

/** The database may be another one, or that of a version whose restores have no column `storage`. */
async function lacksObjects(client: Client, createdAt: string): Promise<boolean> {
  if (!(await exists(client, `select where to_regclass('restores') is not null`))) return false;
  return exists(
    client,
    `select from restores where reconciled_at is null and restored_to = $1
       and to_jsonb(restores) ->> 'storage' in ('comparing', 'copying')`,
    [createdAt],
  );
}

/** Until {@link endRestore}, no worker takes work from the database. Can be repeated. */
export async function beginRestore(client: Client, { createdAt }: Manifest): Promise<void> {
  await client.query(`create schema if not exists ${UNFINISHED_RESTORE_SCHEMA}`);
  await client.query(`create table if not exists ${MARKER} as select $1::timestamptz as created_at`, [
    createdAt,
  ]);
}

export async function endRestore(client: Client): Promise<void> {
  await client.query(`drop schema ${UNFINISHED_RESTORE_SCHEMA} cascade`);
}

/** @throws InstallationError for a database whose restore was interrupted. */
export async function requireFinishedRestore(client: Client): Promise<void> {
  if (await isMarked(client))
    throw new InstallationError(`The restore into ${client.database} was interrupted. Repeat it first.`);
}

const isMarked = (client: Client) => exists(client, 'select where to_regclass($1) is not null', [MARKER]);

async function exists(client: Client, query: string, values: unknown[] = []): Promise<boolean> {
  return ((await client.query(query, values)).rowCount ?? 0) > 0;
}
