import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { createSessionToken, hashSessionToken, isSessionToken } from '../../domain/sessions/session-token.ts';

test('a session token has a prefix that scanners find, and 43 random characters', () => {
  const token = createSessionToken();
  expect(token).toMatch(/^sst_[0-9A-Za-z]{43}$/);
  expect(isSessionToken(token)).toBe(true);
  expect(createSessionToken()).not.toBe(token);
});

test.each([
  ['an API key', `ask_live_${'a'.repeat(38)}`],
  ['a token that is too short', `sst_${'a'.repeat(42)}`],
  ['a token that is too long', `sst_${'a'.repeat(44)}`],
  ['a token with another character', `sst_${'a'.repeat(42)}-`],
  ['a token with something before it', ` sst_${'a'.repeat(43)}`],
])('%s is none', (_name, token) => expect(isSessionToken(token)).toBe(false));

test('only the SHA-256 of a session token is stored', () => {
  expect(hashSessionToken('sst_x')).toEqual(createHash('sha256').update('sst_x').digest());
});
