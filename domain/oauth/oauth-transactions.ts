import { createHmac } from 'node:crypto';
import { sql } from 'kysely';
import { randomBase62, sha256 } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';

/** Secrets between the request to a provider and its answer. The database stores hashes of the first two. */
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

const OAUTH_LIFETIME_MINUTES = 10;
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
  db: Db,
  provider: string,
  { state, browserToken }: OauthSecrets,
  { redirectTo, sessionId }: OauthTransaction,
): Promise<void> {
  await db
    .insertInto('oauth_transactions')
    .values({
      state_hash: sha256(state),
      provider,
      browser_token_hash: sha256(browserToken),
      session_id: sessionId,
      redirect_to: redirectTo,
      expires_at: sql<Date>`now() + make_interval(mins => ${OAUTH_LIFETIME_MINUTES})`,
    })
    .execute();
}

/**
 * Uses up a transaction. Of two concurrent uses, one succeeds.
 *
 * @returns undefined if it is unknown, used or expired, or belongs to another provider or browser.
 */
export function useOauthTransaction(
  db: Db,
  provider: string,
  { state, browserToken }: Pick<OauthSecrets, 'state' | 'browserToken'>,
): Promise<OauthTransaction | undefined> {
  return db
    .deleteFrom('oauth_transactions')
    .where('state_hash', '=', sha256(state))
    .where('provider', '=', provider)
    .where('browser_token_hash', '=', sha256(browserToken))
    .where('expires_at', '>', sql<Date>`now()`)
    .returning(['redirect_to as redirectTo', 'session_id as sessionId'])
    .executeTakeFirst();
}

const PURGE_BATCH_SIZE = 5_000;

/** Deletes sign-ins that never came back from their provider. Returns how many. */
export async function purgeOauthTransactions({ db }: Pick<Database, 'db'>): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('oauth_transactions')
    .where('state_hash', 'in', (eb) =>
      eb
        .selectFrom('oauth_transactions')
        .select('state_hash')
        .where('expires_at', '<', sql<Date>`now()`)
        .limit(PURGE_BATCH_SIZE),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
