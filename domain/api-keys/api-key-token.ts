import { crc32 } from 'node:zlib';
import { randomBase62, sha256 } from '../../platform/crypto.ts';

const BASE62_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
const TOKEN_PATTERN = /^ask_(?:live|test)_[0-9A-Za-z]{38}$/;

/**
 * Creates a new token: `ask_<live|test>_`, 32 random base62 characters (190 bits) and a checksum. The prefix lets scanners
 * find leaked keys; the checksum rejects a mistyped key without a database query.
 */
export function createApiKeyToken(mode: 'live' | 'test'): string {
  const body = `ask_${mode}_${randomBase62(SECRET_LENGTH)}`;
  return body + checksum(body);
}

export function isApiKeyToken(token: string): boolean {
  return TOKEN_PATTERN.test(token) && token.endsWith(checksum(token.slice(0, -CHECKSUM_LENGTH)));
}

/** Returns the hash that is stored. A fast hash suffices, because the token has too much entropy to be guessed. */
export function hashApiKeyToken(token: string): Buffer {
  return sha256(token);
}

function checksum(body: string): string {
  let remainder = crc32(body);
  let text = '';
  for (let place = 0; place < CHECKSUM_LENGTH; place += 1) {
    text = BASE62_ALPHABET.charAt(remainder % BASE62_ALPHABET.length) + text;
    remainder = Math.floor(remainder / BASE62_ALPHABET.length);
  }
  return text;
}
