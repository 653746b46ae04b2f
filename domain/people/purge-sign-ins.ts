import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { purgeKnownDevices } from '../sessions/known-devices.ts';

/** Rows deleted per table and call; the next sweep continues. */
const BATCH_SIZE = 5_000;

/** Deletes expired challenges, tokens, sign-ups, devices, unconfirmed factors and throttles. Returns how many rows. */
export async function purgeSignIns(database: Database): Promise<number> {
  let count = await purgeKnownDevices(database);
  for (const statement of statements(database.db)) {
    const { numDeletedRows } = await statement.executeTakeFirst();
    count += Number(numDeletedRows);
  }
  return count;
}

/**
 * Rows that no request can use any more. Rows of the last day stay, because limits of emails count those of the last hour.
 */
const statements = (db: Db) => [
  db
    .deleteFrom('webauthn_challenges')
    .where('challenge_hash', 'in', (eb) =>
      eb
        .selectFrom('webauthn_challenges')
        .select('challenge_hash')
        .where('expires_at', '<', sql<Date>`now()`)
        .limit(BATCH_SIZE),
    ),
  db
    .deleteFrom('mfa_challenges')
    .where('token_hash', 'in', (eb) =>
      eb
        .selectFrom('mfa_challenges')
        .select('token_hash')
        .where('expires_at', '<', sql<Date>`now()`)
        .limit(BATCH_SIZE),
    ),
  db
    .deleteFrom('account_tokens')
    .where('token_hash', 'in', (eb) =>
      eb
        .selectFrom('account_tokens')
        .select('token_hash')
        .where('expires_at', '<', sql<Date>`now() - interval '1 day'`)
        .limit(BATCH_SIZE),
    ),
  db
    .deleteFrom('sign_ups')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('sign_ups')
        .select('id')
        .where('expires_at', '<', sql<Date>`now() - interval '1 day'`)
        .limit(BATCH_SIZE),
    ),
  db
    .deleteFrom('mfa_enrollments')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('mfa_enrollments')
        .select('id')
        .where('confirmed_at', 'is', null)
        .where('created_at', '<', sql<Date>`now() - interval '1 hour'`)
        .limit(BATCH_SIZE),
    ),
  db
    .deleteFrom('sign_in_attempts')
    .where('key_hash', 'in', (eb) =>
      eb
        .selectFrom('sign_in_attempts')
        .select('key_hash')
        .where('last_attempt_at', '<', sql<Date>`now() - interval '1 day'`)
        .where('blocked_until', '<', sql<Date>`now()`)
        .limit(BATCH_SIZE),
    ),
];
