import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { sha256 } from '../../../platform/crypto.ts';
import type { Db } from '../../../platform/database/tables.ts';

/** What a challenge is for. It is accepted for nothing else. */
export type WebauthnOccasion =
  | { purpose: 'enroll'; userId: string }
  | { purpose: 'second_factor'; userId: string; mfaTokenHash: Buffer }
  | { purpose: 'sign_in' };

/** Browsers give the person the same time. */
export const WEBAUTHN_TIMEOUT_MS = 5 * 60_000;
const CHALLENGE_BYTES = 32;

/** Creates a challenge in the caller's transaction. */
export async function createWebauthnChallenge(
  db: Db,
  occasion: WebauthnOccasion,
): Promise<Uint8Array<ArrayBuffer>> {
  const challenge = new Uint8Array(randomBytes(CHALLENGE_BYTES));
  await db
    .insertInto('webauthn_challenges')
    .values({
      challenge_hash: sha256(challenge),
      purpose: occasion.purpose,
      user_id: userIdOf(occasion),
      mfa_token_hash: mfaTokenHashOf(occasion),
      expires_at: sql<Date>`now() + ${WEBAUTHN_TIMEOUT_MS} * interval '1 millisecond'`,
    })
    .execute();
  return challenge;
}

/**
 * Uses up a challenge. Of two concurrent uses, one succeeds.
 *
 * @param challenge base64url, as the authenticator signed it.
 * @returns whether it was issued for this occasion and has not expired.
 */
export async function useWebauthnChallenge(
  db: Db,
  challenge: string,
  occasion: WebauthnOccasion,
): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('webauthn_challenges')
    .where('challenge_hash', '=', sha256(Buffer.from(challenge, 'base64url')))
    .where('purpose', '=', occasion.purpose)
    .where('user_id', 'is not distinct from', userIdOf(occasion))
    .where('mfa_token_hash', 'is not distinct from', mfaTokenHashOf(occasion))
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

const userIdOf = (occasion: WebauthnOccasion): string | null =>
  'userId' in occasion ? occasion.userId : null;
const mfaTokenHashOf = (occasion: WebauthnOccasion): Buffer | null =>
  'mfaTokenHash' in occasion ? occasion.mfaTokenHash : null;
