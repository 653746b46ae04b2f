import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { Database } from '../database/database.ts';
import { toDatabaseError } from '../database/database-errors.ts';
import { requireKnownKeys } from './keys.ts';
import { requireMigratedSchema } from './schema-version.ts';

const RETRY_DELAY_MS = 2_000;

/**
 * Checks at the start of a process that the database has the schema of this version and was used with its keys. Waits for a
 * database that does not respond.
 *
 * @throws InstallationError
 */
export async function checkInstallation(
  database: Pick<Database, 'db'>,
  config: Pick<Config, 'ENCRYPTION_KEY' | 'SIGNING_KEY'>,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  for (;;) {
    try {
      await requireMigratedSchema(database);
      return await requireKnownKeys(database, config);
    } catch (error) {
      if (toDatabaseError(error)?.code !== 'unavailable') throw error;
      logger.warn({ err: error }, 'PostgreSQL is not reachable, retrying');
      await pause(RETRY_DELAY_MS);
    }
  }
}
