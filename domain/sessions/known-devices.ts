import { sql } from 'kysely';
import { randomBase62, sha256 } from '../../platform/crypto.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';

/** A browser stays known for this long after the last complete sign-in. */
export const KNOWN_DEVICE_DAYS = 90;
/** Failed attempts of a known device that count for the device alone. */
const MAX_DEVICE_FAILURES = 10;
/** People remembered for one browser; the least recent are forgotten. */
export const MAX_PEOPLE_PER_BROWSER = 5;
/**
 * Further devices are forgotten, first those in which the person never signed in again, such as scripts that keep no
 * cookies.
 */
const MAX_DEVICES_PER_PERSON = 50;
const TOKEN_LENGTH = 43;
const PURGE_BATCH_SIZE = 5_000;

const hashesOf = (tokens: readonly string[]): Buffer[] => tokens.slice(0, MAX_PEOPLE_PER_BROWSER).map(sha256);

const expiry = () => sql<Date>`now() + make_interval(days => ${KNOWN_DEVICE_DAYS})`;

/**
 * Counts an attempt for the person's known device, if the browser is one and has failures left. Concurrent attempts wait for
 * the lock on its row.
 *
 * @param person by id, or by the address that someone entered.
 * @returns the device; undefined if the attempt counts for the account.
 */
export async function claimDeviceAttempt(
  db: Db,
  person: { userId: string } | { email: string },
  tokens: readonly string[],
): Promise<Uint8Array | undefined> {
  if (tokens.length === 0) return undefined;
  const device = await db
    .updateTable('known_devices')
    .set((eb) => ({ failures: eb('failures', '+', 1) }))
    .where('token_hash', '=', anyOf(hashesOf(tokens)))
    .where('user_id', '=', (eb) =>
      'userId' in person
        ? eb.val(person.userId)
        : eb.selectFrom('users').select('users.id').where('users.email', '=', person.email),
    )
    .where('expires_at', '>', sql<Date>`now()`)
    .where('failures', '<', MAX_DEVICE_FAILURES)
    .returning('token_hash as tokenHash')
    .executeTakeFirst();
  return device?.tokenHash;
}

/** Takes back an attempt that did not fail. */
export async function releaseDeviceAttempt(db: Db, tokenHash: Uint8Array): Promise<void> {
  await db
    .updateTable('known_devices')
    .set((eb) => ({ failures: eb('failures', '-', 1) }))
    .where('token_hash', '=', tokenHash)
    .where('failures', '>', 0)
    .execute();
}

/**
 * Makes the browser of a complete sign-in a known device, or renews it.
 *
 * @param tokens those in the browser's cookie.
 * @returns the tokens for its cookie, the person's first.
 */
export async function rememberDevice(db: Db, userId: string, tokens: readonly string[]): Promise<string[]> {
  const renewed = await db
    .updateTable('known_devices')
    .set({ failures: 0, last_used_at: sql<Date>`now()`, expires_at: expiry() })
    .where('token_hash', '=', anyOf(hashesOf(tokens)))
    .where('user_id', '=', userId)
    .where('expires_at', '>', sql<Date>`now()`)
    .returning('token_hash as tokenHash')
    .executeTakeFirst();
  const known = renewed && tokens.find((token) => sha256(token).equals(renewed.tokenHash));
  const token = known ?? (await addDevice(db, userId));
  return [token, ...tokens.filter((other) => other !== token)].slice(0, MAX_PEOPLE_PER_BROWSER);
}

async function addDevice(db: Db, userId: string): Promise<string> {
  const token = randomBase62(TOKEN_LENGTH);
  await db
    .insertInto('known_devices')
    .values({
      token_hash: sha256(token),
      user_id: userId,
      failures: 0,
      last_used_at: null,
      expires_at: expiry(),
    })
    .execute();
  await db
    .deleteFrom('known_devices')
    .where('token_hash', 'in', (eb) =>
      eb
        .selectFrom('known_devices')
        .select('token_hash')
        .where('user_id', '=', userId)
        .orderBy('last_used_at', (order) => order.desc().nullsLast())
        .orderBy('created_at', 'desc')
        .offset(MAX_DEVICES_PER_PERSON),
    )
    .execute();
  return token;
}

/** Ends all known devices of a person, in the caller's transaction. */
export async function forgetDevices(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('known_devices').where('user_id', '=', userId).execute();
}

/** Deletes expired devices, at most one batch. Returns their number. */
export async function purgeKnownDevices({ db }: Pick<Database, 'db'>): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('known_devices')
    .where('token_hash', 'in', (eb) =>
      eb
        .selectFrom('known_devices')
        .select('token_hash')
        .where('expires_at', '<', sql<Date>`now()`)
        .limit(PURGE_BATCH_SIZE),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
