import { createHmac } from 'node:crypto';
import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { randomBase62, sha256 } from '../../platform/crypto.ts';

/** Secrets between the request to a provider and its answer. The database has hashes of the first two. */
export interface OauthSecrets {
  state: string;
  /** For a cookie of the browser. */
  browserToken: string;
  nonce: string;
  /** PKCE (RFC 7636). */
  codeVerifier: string;
}

export interface OauthTransaction {
  redirectTo: string;
  /** Null for a sign-in. */
  sessionId: string | null;
}

export const OAUTH_LIFETIME_MINUTES = 10;
const TOKEN_LENGTH = 43;

export function createOauthSecrets(): OauthSecrets {
  return oauthSecretsOf(randomBase62(TOKEN_LENGTH), randomBase62(TOKEN_LENGTH));
}

/** Nonce and verifier are derived, so that only the browser that holds the cookie can complete the exchange. */
export function oauthSecretsOf(browserToken: string, state: string): OauthSecrets {
  const derive = (purpose: string) =>
    createHmac('sha256', browserToken).update(`${purpose}:${state}`).digest('base64url');
  return { state, browserToken, nonce: derive('nonce'), codeVerifier: derive('pkce') };
}

/** Runs in the caller's transaction, as the people role. */
export async function createOauthTransaction(
  em: EntityManager,
  provider: string,
  { state, browserToken }: OauthSecrets,
  { redirectTo, sessionId }: OauthTransaction,
): Promise<void> {
  await em.execute(sql`
    insert into oauth_transactions (state_hash, provider, browser_token_hash, session_id, redirect_to, expires_at,
      created_at)
    values (${sha256(state)}, ${provider}, ${sha256(browserToken)}, ${sessionId}, ${redirectTo},
      now() + ${OAUTH_LIFETIME_MINUTES} * interval '1 minute', now())`);
}

/**
 * Uses a transaction up: of two concurrent uses one succeeds.
 *
 * @returns undefined if it is unknown, used or expired, or belongs to another provider or browser.
 */
export async function useOauthTransaction(
  em: EntityManager,
  provider: string,
  { state, browserToken }: Pick<OauthSecrets, 'state' | 'browserToken'>,
): Promise<OauthTransaction | undefined> {
  const [transaction] = await em.execute<OauthTransaction[]>(sql`
    delete from oauth_transactions
    where state_hash = ${sha256(state)} and provider = ${provider} and browser_token_hash = ${sha256(browserToken)}
      and expires_at > now()
    returning redirect_to as "redirectTo", session_id as "sessionId"`);
  return transaction;
}
