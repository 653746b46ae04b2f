import { expect, test } from '@jest/globals';
import { createAuthThrottle } from '../../workers/auth-throttle.ts';

test('allows ten failures per address in 15 minutes', () => {
  let now = 0;
  const attempts = createAuthThrottle(() => now);
  for (let index = 0; index < 9; index += 1) attempts.recordFailure('192.0.2.1');
  expect(attempts.isAllowed('192.0.2.1')).toBe(true);
  attempts.recordFailure('192.0.2.1');
  expect(attempts.isAllowed('192.0.2.1')).toBe(false);
  expect(attempts.isAllowed('192.0.2.2')).toBe(true);
  now += 15 * 60_000 + 1;
  expect(attempts.isAllowed('192.0.2.1')).toBe(true);
});

test('bounds the number of tracked addresses', () => {
  const attempts = createAuthThrottle(() => 0);
  for (let index = 0; index < 10; index += 1) attempts.recordFailure('first');
  for (let index = 0; index < 10_000; index += 1) attempts.recordFailure(`address-${index}`);
  expect(attempts.isAllowed('first')).toBe(true);
});
