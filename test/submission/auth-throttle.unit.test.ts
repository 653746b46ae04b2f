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

test('counts failures of the last 15 minutes, to the millisecond', () => {
  let now = 1_000_000_000;
  const throttle = createAuthThrottle(() => now);
  for (let index = 0; index < 10; index += 1) fail(throttle, '192.0.2.1');
  now += 15 * 60_000;
  expect(throttle.begin('192.0.2.1')).toBe('exhausted');
  now += 1;
  expect(isAllowed(throttle, '192.0.2.1')).toBe(true);
});

test('still counts attempts in progress when a new window begins', () => {
  let now = 0;
  const throttle = createAuthThrottle(() => now);
  const attempts = Array.from({ length: 10 }, () => throttle.begin('192.0.2.1'));
  now = 15 * 60_000 + 1;
  expect(throttle.begin('192.0.2.1')).toBe('busy');
  for (const attempt of attempts) end(attempt, 'other');
  const next = Array.from({ length: 11 }, () => throttle.begin('192.0.2.1'));
  expect(next.filter((attempt) => attempt === 'busy')).toHaveLength(1);
});

const failFrom = (throttle: AuthThrottle, networks: number) => {
  for (let index = 0; index < networks; index += 1) fail(throttle, `10.0.${index >> 8}.${index & 255}`);
};

test('tracks 10,000 addresses, and forgets the one that was idle longest', () => {
  const throttle = createAuthThrottle(() => 0);
  for (let index = 0; index < 10; index += 1) fail(throttle, '192.0.2.1');
  failFrom(throttle, 9_999);
  expect(throttle.begin('192.0.2.1')).toBe('exhausted');
  failFrom(throttle, 10_000);
  expect(isAllowed(throttle, '192.0.2.1')).toBe(true);
});

test('an attempt whose address was forgotten does not add to what the address may do', () => {
  const throttle = createAuthThrottle(() => 0);
  const forgotten = throttle.begin('192.0.2.1');
  failFrom(throttle, 10_000);
  end(forgotten, 'other');
  const attempts = Array.from({ length: 11 }, () => throttle.begin('192.0.2.1'));
  expect(attempts.filter((attempt) => attempt === 'busy')).toHaveLength(1);
});
