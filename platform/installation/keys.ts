import type { Config } from '../config.ts';
import { listKeyIds } from '../crypto.ts';
import type { Database } from '../database/database.ts';
import { InstallationError } from './installation-error.ts';
import type { InstallationKeyKind } from './installation-key.entity.ts';

type Keys = Pick<Config, 'ENCRYPTION_KEY' | 'SIGNING_KEY'>;

/**
 * Compares the configured keys with those that the database was used with, and records the first key of each list, with
 * which this process will write.
 *
 * @throws InstallationError if a stored value could not be decrypted, or no earlier signature would be valid.
 */
export async function requireKnownKeys({ db }: Pick<Database, 'db'>, keys: Keys): Promise<void> {
  const recorded = await db.selectFrom('installation_keys').select(['kind', 'key_id as keyId']).execute();
  const recordedOf = (kind: InstallationKeyKind) =>
    recorded.filter((key) => key.kind === kind).map(({ keyId }) => keyId);
  const encryption = listKeyIds(keys.ENCRYPTION_KEY, 'ENCRYPTION_KEY');
  const signing = listKeyIds(keys.SIGNING_KEY, 'SIGNING_KEY');
  requireEveryKey(recordedOf('encryption'), encryption);
  requireAnyKey(recordedOf('signing'), signing);
  for (const [kind, [keyId]] of [['encryption', encryption] as const, ['signing', signing] as const]) {
    if (recordedOf(kind).includes(keyId)) continue;
    await db
      .insertInto('installation_keys')
      .values({ kind, key_id: keyId })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/** Each recorded key may have encrypted a value that is still stored; `npm run keys:reencrypt` removes older ones. */
function requireEveryKey(recorded: readonly string[], listed: readonly string[]): void {
  const missing = recorded.filter((keyId) => !listed.includes(keyId));
  if (missing.length === 0) return;
  throw new InstallationError(
    `ENCRYPTION_KEY is wrong or incomplete: values of this database are encrypted with the key ${missing.join(', ')}, but ENCRYPTION_KEY lists ${listed.join(', ')}. Add the missing key after a comma; \`npm run keys:reencrypt\` reports when an older key may be removed.`,
  );
}

/** An older signing key may be removed, which ends the validity of its signatures. */
function requireAnyKey(recorded: readonly string[], listed: readonly string[]): void {
  if (recorded.length === 0 || listed.some((keyId) => recorded.includes(keyId))) return;
  throw new InstallationError(
    `SIGNING_KEY is wrong: this database was used with the key ${recorded.join(', ')}, but SIGNING_KEY lists ${listed.join(', ')}. With it, return paths, unsubscribe links and recovery codes in use would be invalid. To rotate, list the old key after the new one, separated by a comma.`,
  );
}

/** From now on, processes start without these keys. Returns their ids. */
export async function forgetOlderEncryptionKeys(
  { db }: Pick<Database, 'db'>,
  current: string,
): Promise<string[]> {
  const rows = await db
    .deleteFrom('installation_keys')
    .where('kind', '=', 'encryption')
    .where('key_id', '<>', current)
    .returning('key_id as keyId')
    .execute();
  return rows.map(({ keyId }) => keyId);
}
