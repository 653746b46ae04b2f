import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { sha256 } from '../../platform/crypto.ts';
import type { SessionMethod } from '../identity/person.ts';
import type { Client } from './client.ts';

const MAX_FAILURES = 5;

/** Whose sign-in waits with this token. Undefined if it is unknown, used, expired or void. */
export async function findWaitingUser(em: EntityManager, mfaToken: string): Promise<string | undefined> {
  const [row] = await em.execute<{ userId: string }[]>(sql`
    select user_id as "userId" from mfa_challenges
    where token_hash = ${sha256(mfaToken)} and used_at is null and expires_at > now() and failures < ${MAX_FAILURES}`);
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

/** Returns whether the token is void now. */
export async function countFailure(em: EntityManager, { mfaTokenHash }: PendingSignIn): Promise<boolean> {
  const [row] = await em.execute<{ failures: number }[]>(sql`
    update mfa_challenges set failures = failures + 1 where token_hash = ${mfaTokenHash} returning failures`);
  return (row?.failures ?? 0) >= MAX_FAILURES;
}

export async function completePendingSignIn(
  em: EntityManager,
  { mfaTokenHash }: PendingSignIn,
): Promise<void> {
  await em.execute(sql`update mfa_challenges set used_at = now() where token_hash = ${mfaTokenHash}`);
}
