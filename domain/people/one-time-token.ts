import { randomBase62, sha256 } from '../../platform/crypto.ts';

const TOKEN_LENGTH = 43;

/** A token for an email or a browser: 256 bits, of which only the hash is stored. */
export function createOneTimeToken(): { token: string; hash: Buffer } {
  const token = randomBase62(TOKEN_LENGTH);
  return { token, hash: sha256(token) };
}

export const hashOneTimeToken = (token: string): Buffer => sha256(token);
