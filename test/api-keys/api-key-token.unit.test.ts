import { crc32 } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { createApiKeyToken, hashApiKeyToken, isApiKeyToken } from '../../domain/api-keys/api-key-token.ts';

test('tokens have the specified format and are unique', () => {
  const tokens = Array.from({ length: 500 }, () => createApiKeyToken('live'));
  for (const token of tokens) {
    expect(token).toMatch(/^ask_live_[0-9A-Za-z]{32}[0-9A-Za-z]{6}$/);
    expect(isApiKeyToken(token)).toBe(true);
  }
  expect(new Set(tokens).size).toBe(tokens.length);
  expect(createApiKeyToken('test')).toMatch(/^ask_test_/);
});

test('the checksum detects a mistyped character at any position', () => {
  const token = createApiKeyToken('live');
  for (let index = 0; index < token.length; index += 1) {
    const other = token[index] === 'x' ? 'y' : 'x';
    expect(isApiKeyToken(token.slice(0, index) + other + token.slice(index + 1))).toBe(false);
  }
});

test.each([
  '',
  'ask_live_',
  `${createApiKeyToken('live')}x`,
  ` ${createApiKeyToken('live')}`,
  'sst_0123456789',
])('rejects %j', (token) => {
  expect(isApiKeyToken(token)).toBe(false);
});

test('the stored hash does not reveal the token', () => {
  const token = createApiKeyToken('live');
  expect(hashApiKeyToken(token)).toHaveLength(32);
  expect(hashApiKeyToken(token).toString('latin1')).not.toContain(token.slice(-6));
});

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** As a scanner for leaked keys computes it: CRC-32 in six digits of base 62. */
const withChecksum = (body: string) => {
  const digits = Array.from({ length: 6 }, (_, place) => Math.floor(crc32(body) / 62 ** (5 - place)) % 62);
  return body + digits.map((digit) => BASE62.charAt(digit)).join('');
};
const SECRET = '0123456789ABCDEFGHIJKLMNOPQRSTUV';

test('keys that were issued stay valid: the checksum does not change', () => {
  expect(withChecksum(`ask_live_${SECRET}`)).toBe(`ask_live_${SECRET}0YuuGW`);
  expect(isApiKeyToken(`ask_live_${SECRET}0YuuGW`)).toBe(true);
});

test.each([
  ['of another mode', `ask_prod_${SECRET}`],
  ['with something before it', `xask_live_${SECRET}`],
  ['that is too long', `ask_live_${SECRET}x`],
  ['that is too short', `ask_live_${SECRET.slice(1)}`],
  ['with another character', `ask_live_-${SECRET.slice(1)}`],
])('rejects a key %s, also with a checksum that fits', (_name, body) => {
  expect(isApiKeyToken(withChecksum(body))).toBe(false);
});
