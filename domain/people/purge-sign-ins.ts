import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';
import type { Sql } from '../../platform/database/sql.ts';
import { purgeKnownDevices } from '../sessions/known-devices.ts';

/** Rows deleted per table and call; the next sweep continues. */
const BATCH_SIZE = 5_000;

/** Deletes expired challenges, tokens, sign-ups, devices, unconfirmed factors and throttles. Returns how many rows. */
export async function purgeSignIns(database: Database): Promise<number> {
  let count = await purgeKnownDevices(database);
  for (const statement of statements()) count += await deleteRows(database, statement);
  return count;
}

/** What no request can use any more. Limits of emails count the rows of an hour, so those of a day stay. */
const statements = (): Sql[] => [
  sql`delete from webauthn_challenges where challenge_hash in (
    select challenge_hash from webauthn_challenges where expires_at < now() limit ${BATCH_SIZE})`,
  sql`delete from mfa_challenges where token_hash in (
    select token_hash from mfa_challenges where expires_at < now() limit ${BATCH_SIZE})`,
  sql`delete from account_tokens where token_hash in (
    select token_hash from account_tokens where expires_at < now() - interval '1 day' limit ${BATCH_SIZE})`,
  sql`delete from sign_ups where id in (
    select id from sign_ups where expires_at < now() - interval '1 day' limit ${BATCH_SIZE})`,
  sql`delete from mfa_enrollments where id in (
    select id from mfa_enrollments
    where confirmed_at is null and created_at < now() - interval '1 hour' limit ${BATCH_SIZE})`,
  sql`delete from sign_in_attempts where key_hash in (
    select key_hash from sign_in_attempts
    where last_attempt_at < now() - interval '1 day' and blocked_until < now() limit ${BATCH_SIZE})`,
];
