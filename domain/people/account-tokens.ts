import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { AccountTokenPurpose } from './account-token.entity.ts';
import { createOneTimeToken, hashOneTimeToken } from './one-time-token.ts';
import { invalidCredentials } from './start-session.ts';

export interface NewAccountToken {
  userId: string;
  purpose: AccountTokenPurpose;
  /** With the purpose `change_email`. */
  newEmail?: string;
  lifetimeMinutes: number;
  /** Whether earlier tokens for the purpose stay valid. Default: they are voided. */
  keepsEarlier?: boolean;
}

/** Creates a token to be mailed and, unless it keeps them, voids earlier ones for the same purpose. Runs in the caller's transaction. */
export async function createAccountToken(
  em: EntityManager,
  { userId, purpose, newEmail, lifetimeMinutes, keepsEarlier = false }: NewAccountToken,
): Promise<string> {
  const { token, hash } = createOneTimeToken();
  if (!keepsEarlier) await voidAccountTokens(em, userId, purpose);
  await em.execute(sql`
    insert into account_tokens (token_hash, purpose, user_id, new_email, expires_at, created_at)
    values (${hash}, ${purpose}, ${userId}, ${newEmail ?? null}, now() + ${lifetimeMinutes} * interval '1 minute', now())`);
  return token;
}

/** @param purpose undefined voids the tokens of every purpose. */
export async function voidAccountTokens(
  em: EntityManager,
  userId: string,
  purpose?: AccountTokenPurpose,
): Promise<void> {
  await em.execute(sql`
    update account_tokens set used_at = now()
    where user_id = ${userId} and used_at is null and purpose = coalesce(${purpose ?? null}, purpose)`);
}

/**
 * Uses a token up: of two concurrent uses one succeeds.
 *
 * @throws AppError `invalid_credentials` for an unknown, used or expired token.
 */
export async function useAccountToken(
  em: EntityManager,
  token: string,
  purpose: AccountTokenPurpose,
): Promise<{ userId: string; newEmail: string | null }> {
  const [row] = await em.execute<{ userId: string; newEmail: string | null }[]>(sql`
    update account_tokens set used_at = now()
    where token_hash = ${hashOneTimeToken(token)} and purpose = ${purpose} and used_at is null and expires_at > now()
    returning user_id as "userId", new_email as "newEmail"`);
  if (!row) throw invalidCredentials();
  return row;
}
