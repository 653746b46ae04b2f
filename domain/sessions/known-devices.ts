import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { randomBase62, sha256 } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';

/** A browser stays known for this long after the last complete sign-in. */
export const KNOWN_DEVICE_DAYS = 90;
/** Failed attempts of a device that the common counters do not see. */
const MAX_DEVICE_FAILURES = 10;
/** People whom one browser knows; the least recent ones are forgotten. */
export const MAX_PEOPLE_PER_BROWSER = 5;
/** More are forgotten: first those in which the person never signed in again, such as a script that keeps no cookies. */
const MAX_DEVICES_PER_PERSON = 50;
const TOKEN_LENGTH = 43;
const PURGE_BATCH_SIZE = 5_000;

/** Hashes for `in`, which must not be empty: no token has the empty hash. */
const hashesOf = (tokens: readonly string[]): Buffer[] => [
  Buffer.alloc(0),
  ...tokens.slice(0, MAX_PEOPLE_PER_BROWSER).map(sha256),
];

/**
 * Counts an attempt for the device of the person, if the browser has one of theirs with failures left. Concurrent attempts
 * wait for each other at its row.
 *
 * @param person by id, or by the address that someone entered.
 * @returns the device; undefined if the attempt counts for all clients.
 */
export async function claimDeviceAttempt(
  em: EntityManager,
  person: { userId: string } | { email: string },
  tokens: readonly string[],
): Promise<Buffer | undefined> {
  if (tokens.length === 0) return undefined;
  const owner =
    'userId' in person ? sql`${person.userId}` : sql`(select id from users where email = ${person.email})`;
  const [device] = await em.execute<{ tokenHash: Buffer }[]>(sql`
    update known_devices set failures = failures + 1
    where token_hash in (${hashesOf(tokens)}) and user_id = ${owner} and expires_at > now()
      and failures < ${MAX_DEVICE_FAILURES}
    returning token_hash as "tokenHash"`);
  return device?.tokenHash;
}

/** Takes back an attempt that did not fail. */
export async function releaseDeviceAttempt(em: EntityManager, tokenHash: Buffer): Promise<void> {
  await em.execute(sql`
    update known_devices set failures = failures - 1 where token_hash = ${tokenHash} and failures > 0`);
}

/**
 * Makes the browser of a complete sign-in known, or renews it.
 *
 * @param tokens those in the browser's cookie.
 * @returns the tokens for its cookie, the person's first.
 */
export async function rememberDevice(
  em: EntityManager,
  userId: string,
  tokens: readonly string[],
): Promise<string[]> {
  const [renewed] = await em.execute<{ tokenHash: Buffer }[]>(sql`
    update known_devices set failures = 0, last_used_at = now(), expires_at = now() + ${KNOWN_DEVICE_DAYS} * interval '1 day'
    where token_hash in (${hashesOf(tokens)}) and user_id = ${userId} and expires_at > now()
    returning token_hash as "tokenHash"`);
  const known = renewed && tokens.find((token) => sha256(token).equals(renewed.tokenHash));
  const token = known ?? (await addDevice(em, userId));
  return [token, ...tokens.filter((other) => other !== token)].slice(0, MAX_PEOPLE_PER_BROWSER);
}

async function addDevice(em: EntityManager, userId: string): Promise<string> {
  const token = randomBase62(TOKEN_LENGTH);
  await em.execute(sql`
    insert into known_devices (token_hash, user_id, failures, created_at, last_used_at, expires_at)
    values (${sha256(token)}, ${userId}, 0, now(), null, now() + ${KNOWN_DEVICE_DAYS} * interval '1 day')`);
  await em.execute(sql`
    delete from known_devices where token_hash in (
      select token_hash from known_devices where user_id = ${userId}
      order by last_used_at desc nulls last, created_at desc offset ${MAX_DEVICES_PER_PERSON})`);
  return token;
}

/** Ends all known devices of a person, in the caller's transaction. */
export async function forgetDevices(em: EntityManager, userId: string): Promise<void> {
  await em.execute(sql`delete from known_devices where user_id = ${userId}`);
}

/** Deletes devices that are known no more, at most one batch. Returns their number. */
export function purgeKnownDevices(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from known_devices where token_hash in (
      select token_hash from known_devices where expires_at < now() limit ${PURGE_BATCH_SIZE})`,
  );
}
