import { randomBase62, sha256 } from '../../platform/crypto.ts';

const SECRET_LENGTH = 43;
const TOKEN_PATTERN = /^sst_[0-9A-Za-z]{43}$/;

/** Creates a new token: `sst_` and 43 random base62 characters (256 bits). */
export function createSessionToken(): string {
  return `sst_${randomBase62(SECRET_LENGTH)}`;
}

export function isSessionToken(token: string): boolean {
  return TOKEN_PATTERN.test(token);
}

/** Returns the hash that is stored. A fast hash suffices, because the token has too much entropy to be guessed. */
export function hashSessionToken(token: string): Buffer {
  return sha256(token);
}
