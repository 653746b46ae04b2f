import { randomBase62, sha256 } from '../../platform/crypto.ts';

const SECRET_LENGTH = 43;
const TOKEN_PATTERN = /^imt_[0-9A-Za-z]{43}$/;

/** Creates a new token: `imt_` and 43 random base62 characters (256 bits). */
export function createImpersonationToken(): string {
  return `imt_${randomBase62(SECRET_LENGTH)}`;
}

export function isImpersonationToken(token: string): boolean {
  return TOKEN_PATTERN.test(token);
}

/** Returns the hash that is stored. */
export function hashImpersonationToken(token: string): Buffer {
  return sha256(token);
}
