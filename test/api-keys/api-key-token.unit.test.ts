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
