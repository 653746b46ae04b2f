import { expect, test } from '@jest/globals';
import { type AuthThrottle, createAuthThrottle } from '../../workers/auth-throttle.ts';

const end = (attempt: ReturnType<AuthThrottle['begin']>, outcome: 'failed' | 'other') => {
  if (typeof attempt === 'function') attempt(outcome);
};
const isAllowed = (throttle: AuthThrottle, address: string) => {
  const attempt = throttle.begin(address);
  end(attempt, 'other');
  return attempt !== 'exhausted';
};
const fail = (throttle: AuthThrottle, address: string) => end(throttle.begin(address), 'failed');

test('allows ten failures per address in 15 minutes', () => {
  let now = 0;
  const throttle = createAuthThrottle(() => now);
  for (let index = 0; index < 9; index += 1) fail(throttle, '192.0.2.1');
  expect(isAllowed(throttle, '192.0.2.1')).toBe(true);
  fail(throttle, '192.0.2.1');
  expect(isAllowed(throttle, '192.0.2.1')).toBe(false);
  expect(isAllowed(throttle, '192.0.2.2')).toBe(true);
  now += 15 * 60_000 + 1;
  expect(isAllowed(throttle, '192.0.2.1')).toBe(true);
});

test('counts attempts in progress like failures, and does not take them for failures', () => {
  const throttle = createAuthThrottle(() => 0);
  const attempts = Array.from({ length: 12 }, () => throttle.begin('192.0.2.1'));
  expect(attempts.slice(10)).toEqual(['busy', 'busy']);
  for (const attempt of attempts.slice(0, 9)) end(attempt, 'failed');
  expect(throttle.begin('192.0.2.1')).toBe('busy');
  for (const attempt of attempts.slice(9)) end(attempt, 'failed');
  expect(throttle.begin('192.0.2.1')).toBe('exhausted');
});

test('counts an IPv6 /64 as one address', () => {
  const throttle = createAuthThrottle(() => 0);
  for (let index = 0; index < 10; index += 1) fail(throttle, `2001:db8:0:1::${index}`);
  expect(isAllowed(throttle, '2001:db8:0:1:ffff::1')).toBe(false);
  expect(isAllowed(throttle, '2001:db8:0:2::1')).toBe(true);
});

test('bounds the number of tracked addresses', () => {
  const throttle = createAuthThrottle(() => 0);
  for (let index = 0; index < 10; index += 1) fail(throttle, '192.0.2.1');
  for (let index = 0; index < 10_000; index += 1) fail(throttle, `10.0.${index >> 8}.${index & 255}`);
  expect(isAllowed(throttle, '192.0.2.1')).toBe(true);
});
