import { expect, test } from '@jest/globals';
import { createAuthAttempts } from '../../workers/auth-attempts.ts';

test('an address may fail ten times in 15 minutes', () => {
  let now = 0;
  const attempts = createAuthAttempts(() => now);
  for (let index = 0; index < 9; index += 1) attempts.failed('192.0.2.1');
  expect(attempts.mayTry('192.0.2.1')).toBe(true);
  attempts.failed('192.0.2.1');
  expect(attempts.mayTry('192.0.2.1')).toBe(false);
  expect(attempts.mayTry('192.0.2.2')).toBe(true);
  now += 15 * 60_000 + 1;
  expect(attempts.mayTry('192.0.2.1')).toBe(true);
});

test('what is remembered is bounded', () => {
  const attempts = createAuthAttempts(() => 0);
  for (let index = 0; index < 10; index += 1) attempts.failed('first');
  for (let index = 0; index < 10_000; index += 1) attempts.failed(`address-${index}`);
  expect(attempts.mayTry('first')).toBe(true);
});
