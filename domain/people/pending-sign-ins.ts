import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { sha256 } from '../../platform/crypto.ts';
import type { SessionMethod } from '../identity/person.ts';
import type { Client } from './client.ts';

const MAX_FAILURES = 5;

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
 * @returns undefined if it is unknown, used, older than ten minutes, void after five wrong codes, or was begun in another
 * browser.
 */
export async function findPendingSignIn(
  em: EntityManager,
  mfaToken: string,
  { browserToken }: Pick<Client, 'browserToken'>,
): Promise<PendingSignIn | undefined> {
  const mfaTokenHash = sha256(mfaToken);
  const browserTokenHash = browserToken === undefined ? null : sha256(browserToken);
  const [pending] = await em.execute<Omit<PendingSignIn, 'mfaTokenHash'>[]>(sql`
    select c.user_id as "userId", u.email, c.method, c.sso_configuration_id as "ssoConfigurationId"
    from mfa_challenges c join users u on u.id = c.user_id
    where c.token_hash = ${mfaTokenHash} and c.used_at is null and c.expires_at > now() and c.failures < ${MAX_FAILURES}
      and (c.browser_token_hash is null or c.browser_token_hash = ${browserTokenHash}::bytea)
    for update of c`);
  return pending && { ...pending, mfaTokenHash };
}

export async function countFailure(em: EntityManager, { mfaTokenHash }: PendingSignIn): Promise<void> {
  await em.execute(sql`update mfa_challenges set failures = failures + 1 where token_hash = ${mfaTokenHash}`);
}

export async function completePendingSignIn(
  em: EntityManager,
  { mfaTokenHash }: PendingSignIn,
): Promise<void> {
  await em.execute(sql`update mfa_challenges set used_at = now() where token_hash = ${mfaTokenHash}`);
}
