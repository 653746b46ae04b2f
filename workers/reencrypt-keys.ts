import { sealedColumns } from '../domain/sealed-columns.ts';
import { type Config, loadConfig } from '../platform/config.ts';
import { createSecretBox, listKeyIds } from '../platform/crypto.ts';
import { createDatabase, type Database } from '../platform/database/database.ts';
import { InstallationError } from '../platform/installation/installation-error.ts';
import { forgetOlderEncryptionKeys, requireKnownKeys } from '../platform/installation/keys.ts';
import { type ColumnResult, reencryptColumn } from '../platform/installation/reencrypt.ts';
import { requireMigratedSchema } from '../platform/installation/schema-version.ts';
import { runCommand } from './run-command.ts';

export interface ReencryptResult {
  columns: ColumnResult[];
  /** Ids of encryption keys that no value needs any more. */
  removable: string[];
  /** Values that still have another than the first key. */
  remaining: number;
}

/**
 * `npm run keys:reencrypt`: encrypts everything that has an older key with the first key of `ENCRYPTION_KEY`. Safe to repeat,
 * and beside running processes.
 *
 * @param database with the login of the schema's owner.
 */
export async function reencryptAll(
  database: Database,
  keys: Pick<Config, 'ENCRYPTION_KEY' | 'SIGNING_KEY'>,
): Promise<ReencryptResult> {
  await requireMigratedSchema(database);
  await requireKnownKeys(database, keys);
  const secretBox = createSecretBox(keys.ENCRYPTION_KEY);
  const columns: ColumnResult[] = [];
  for (const column of sealedColumns) columns.push(await reencryptColumn(database, secretBox, column));
  const remaining = columns.reduce((sum, column) => sum + column.remaining, 0);
  const [current] = listKeyIds(keys.ENCRYPTION_KEY, 'ENCRYPTION_KEY');
  return {
    columns,
    remaining,
    removable: remaining > 0 ? [] : await forgetOlderEncryptionKeys(database, current),
  };
}

async function main(): Promise<void> {
  const config = loadConfig();
  if (!config.MIGRATION_DATABASE_URL)
    throw new InstallationError(
      'MIGRATION_DATABASE_URL is required: only the owner of the schema may write every table',
    );
  const database = createDatabase({ url: config.MIGRATION_DATABASE_URL, poolSize: 1 });
  try {
    const result = await reencryptAll(database, config);
    process.stdout.write(`${describeResult(result, config)}${await describeSigningKeys(database, config)}`);
    if (result.remaining > 0) process.exitCode = 1;
  } finally {
    await database.close();
  }
}

function describeResult({ columns, removable, remaining }: ReencryptResult, config: Config): string {
  const [current, ...others] = listKeyIds(config.ENCRYPTION_KEY, 'ENCRYPTION_KEY');
  const lines = columns.flatMap(({ table, column, reencrypted, unreadable }) => [
    `${table}.${column}: ${reencrypted} encrypted again`,
    ...Object.entries(unreadable).map(([reason, count]) => `  ${count} unreadable: ${reason}`),
  ]);
  const old = [...new Set([...removable, ...others])];
  const summary =
    remaining > 0
      ? `${remaining} values do not have the key ${current}. Do not remove any key from ENCRYPTION_KEY. Repeat the command if processes were writing with an older key.`
      : old.length > 0
        ? `Everything is encrypted with the key ${current}. Once every process runs with it as the first key, run this command again; if it reports 0 for every column, you may remove ${old.join(', ')} from ENCRYPTION_KEY.`
        : `Everything is encrypted with the key ${current}.`;
  return `${[...lines, summary].join('\n')}\n`;
}

/** Says until when signatures of an older key are in use. */
async function describeSigningKeys(database: Database, config: Config): Promise<string> {
  const [current, ...others] = listKeyIds(config.SIGNING_KEY, 'SIGNING_KEY');
  if (others.length === 0) return '';
  const row = await database.db
    .selectFrom('installation_keys as key')
    .select([
      'key.created_at as since',
      ({ selectFrom, fn }) =>
        selectFrom('mfa_recovery_codes as code')
          .select(fn.countAll<number>().as('count'))
          .where('code.used_at', 'is', null)
          .whereRef('code.created_at', '<', 'key.created_at')
          .as('codes'),
    ])
    .where('key.kind', '=', 'signing')
    .where('key.key_id', '=', current)
    .executeTakeFirst();
  return `SIGNING_KEY: the key ${current} signs since ${row?.since.toISOString().replace(/\.\d+/, '')}. ${row?.codes ?? 0} unused recovery codes are older and need ${others.join(', ')}, as do return paths and unsubscribe links of earlier mail.\n`;
}

if (import.meta.main) runCommand('keys:reencrypt', main);
