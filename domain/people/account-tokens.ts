import { sql } from 'kysely';
import { createOneTimeToken, hashOneTimeToken } from '../../platform/crypto.ts';
import type { Db } from '../../platform/database/tables.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import type { AccountTokenPurpose } from './user.entity.ts';

export interface NewAccountToken {
  userId: string;
  purpose: AccountTokenPurpose;
  /** With the purpose `change_email`. */
  newEmail?: string;
  lifetimeMinutes: number;
  /** Whether earlier tokens for the purpose stay valid. Default: they are voided. */
  keepsEarlier?: boolean;
}

/**
 * Creates a token to be mailed, and voids earlier tokens for the same purpose unless `keepsEarlier`. Runs in the caller's
 * transaction.
 */
export async function createAccountToken(
  db: Db,
  { userId, purpose, newEmail, lifetimeMinutes, keepsEarlier = false }: NewAccountToken,
): Promise<string> {
  const { token, hash } = createOneTimeToken();
  if (!keepsEarlier) await voidAccountTokens(db, userId, purpose);
  await db
    .insertInto('account_tokens')
    .values({
      token_hash: hash,
      purpose,
      user_id: userId,
      new_email: newEmail ?? null,
      expires_at: sql<Date>`now() + make_interval(mins => ${lifetimeMinutes})`,
      used_at: null,
    })
    .execute();
  return token;
}

/** @param purpose undefined voids the tokens of every purpose. */
export async function voidAccountTokens(
  db: Db,
  userId: string,
  purpose?: AccountTokenPurpose,
): Promise<void> {
  const ofPerson = db
    .updateTable('account_tokens')
    .set({ used_at: sql<Date>`now()` })
    .where('user_id', '=', userId)
    .where('used_at', 'is', null);
  await (purpose === undefined ? ofPerson : ofPerson.where('purpose', '=', purpose)).execute();
}

/**
 * Uses up a token. Of two concurrent uses, one succeeds.
 *
 * @throws AppError `invalid_credentials` for an unknown, used or expired token.
 */
export async function useAccountToken(
  db: Db,
  token: string,
  purpose: AccountTokenPurpose,
): Promise<{ userId: string; newEmail: string | null }> {
  const row = await db
    .updateTable('account_tokens')
    .set({ used_at: sql<Date>`now()` })
    .where('token_hash', '=', hashOneTimeToken(token))
    .where('purpose', '=', purpose)
    .where('used_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .returning(['user_id as userId', 'new_email as newEmail'])
    .executeTakeFirst();
  if (!row) throw invalidCredentials();
  return row;
}
