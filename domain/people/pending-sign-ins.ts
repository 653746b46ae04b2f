import { sql } from 'kysely';
import { sha256 } from '../../platform/crypto.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Client, SessionMethod } from '../identity/person.ts';

const MAX_FAILURES = 5;

/** Finds the user whose sign-in waits with this token. Undefined if the token is unknown, used, expired or void. */
export async function findWaitingUser(db: Db, mfaToken: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('mfa_challenges')
    .select('user_id as userId')
    .where('token_hash', '=', sha256(mfaToken))
    .where('used_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .where('failures', '<', MAX_FAILURES)
    .executeTakeFirst();
  return row?.userId;
}

/** A sign-in that waits for its second factor. */
export interface PendingSignIn {
  mfaTokenHash: Buffer;
  userId: string;
  email: string;
  method: SessionMethod;
  ssoConfigurationId: string | null;
}

/**
 * Finds a sign-in by its `mfa_token`, and locks it until the commit, so that concurrent guesses are counted one by one.
 *
 * @returns undefined if the sign-in is unknown, used, older than ten minutes, void after five wrong codes, or was begun in
 * another browser.
 */
export async function findPendingSignIn(
  db: Db,
  mfaToken: string,
  { browserToken }: Pick<Client, 'browserToken'>,
): Promise<PendingSignIn | undefined> {
  const mfaTokenHash = sha256(mfaToken);
  const pending = await db
    .selectFrom('mfa_challenges')
    .innerJoin('users', 'users.id', 'mfa_challenges.user_id')
    .select([
      'mfa_challenges.user_id as userId',
      'users.email',
      'mfa_challenges.method',
      'mfa_challenges.sso_configuration_id as ssoConfigurationId',
    ])
    .where('mfa_challenges.token_hash', '=', mfaTokenHash)
    .where('mfa_challenges.used_at', 'is', null)
    .where('mfa_challenges.expires_at', '>', sql<Date>`now()`)
    .where('mfa_challenges.failures', '<', MAX_FAILURES)
    .where((eb) => {
      const isUnbound = eb('mfa_challenges.browser_token_hash', 'is', null);
      return browserToken === undefined
        ? isUnbound
        : eb.or([isUnbound, eb('mfa_challenges.browser_token_hash', '=', sha256(browserToken))]);
    })
    .forUpdate('mfa_challenges')
    .executeTakeFirst();
  return pending && { ...pending, mfaTokenHash };
}

/** Returns whether the token is void now. */
export async function countFailure(db: Db, { mfaTokenHash }: PendingSignIn): Promise<boolean> {
  const row = await db
    .updateTable('mfa_challenges')
    .set((eb) => ({ failures: eb('failures', '+', 1) }))
    .where('token_hash', '=', mfaTokenHash)
    .returning('failures')
    .executeTakeFirst();
  return (row?.failures ?? 0) >= MAX_FAILURES;
}

export async function completePendingSignIn(db: Db, { mfaTokenHash }: PendingSignIn): Promise<void> {
  await db
    .updateTable('mfa_challenges')
    .set({ used_at: sql<Date>`now()` })
    .where('token_hash', '=', mfaTokenHash)
    .execute();
}

/** Voids the sign-ins that wait for a second factor, because their first factor no longer counts. */
export async function voidPendingSignIns(db: Db, userId: string): Promise<void> {
  await db
    .updateTable('mfa_challenges')
    .set({ used_at: sql<Date>`now()` })
    .where('user_id', '=', userId)
    .where('used_at', 'is', null)
    .execute();
}
