import { randomBytes } from 'node:crypto';
import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { sha256 } from '../../../platform/crypto.ts';

/** What a challenge is for. It is accepted for nothing else. */
export type WebauthnOccasion =
  | { purpose: 'enroll'; userId: string }
  | { purpose: 'second_factor'; userId: string; mfaTokenHash: Buffer }
  | { purpose: 'sign_in' };

/** Also the time that the browser gives the person. */
export const WEBAUTHN_TIMEOUT_MS = 5 * 60_000;
const CHALLENGE_BYTES = 32;

/** Creates a challenge in the caller's transaction. */
export async function createWebauthnChallenge(
  em: EntityManager,
  occasion: WebauthnOccasion,
): Promise<Uint8Array<ArrayBuffer>> {
  const challenge = new Uint8Array(randomBytes(CHALLENGE_BYTES));
  await em.execute(sql`
    insert into webauthn_challenges (challenge_hash, purpose, user_id, mfa_token_hash, expires_at, created_at)
    values (${sha256(challenge)}, ${occasion.purpose}, ${userIdOf(occasion)}, ${mfaTokenHashOf(occasion)},
      now() + ${WEBAUTHN_TIMEOUT_MS} * interval '1 millisecond', now())`);
  return challenge;
}

/**
 * Uses a challenge up: of two concurrent uses one succeeds.
 *
 * @param challenge base64url, as the authenticator signed it.
 * @returns whether it was issued for this occasion and has not expired.
 */
export async function useWebauthnChallenge(
  em: EntityManager,
  challenge: string,
  occasion: WebauthnOccasion,
): Promise<boolean> {
  const used = await em.execute<object[]>(sql`
    delete from webauthn_challenges
    where challenge_hash = ${sha256(Buffer.from(challenge, 'base64url'))} and purpose = ${occasion.purpose}
      and user_id is not distinct from ${userIdOf(occasion)}::text
      and mfa_token_hash is not distinct from ${mfaTokenHashOf(occasion)}::bytea and expires_at > now()
    returning purpose`);
  return used.length > 0;
}

const userIdOf = (occasion: WebauthnOccasion): string | null =>
  'userId' in occasion ? occasion.userId : null;
const mfaTokenHashOf = (occasion: WebauthnOccasion): Buffer | null =>
  'mfaTokenHash' in occasion ? occasion.mfaTokenHash : null;
