import { expect, test } from '@jest/globals';
import { runWithTimeout } from '../../platform/run-with-timeout.ts';
import { TIME_FACTOR } from '../support/time-factor.ts';

test('returns the result of work that finishes in time', () => {
  expect(runWithTimeout(1_000, () => ['done'])).toEqual(['done']);
});

test('rethrows the error of failing work', () => {
  const failure = new Error('no');
  expect(() =>
    runWithTimeout(1_000, () => {
      throw failure;
    }),
  ).toThrow(failure);
});

test.each([
  [
    'a loop',
    () => {
      for (;;);
    },
  ],
  ['a regular expression', () => /^(?:a+)+$/.test(`${'a'.repeat(60)}b`)],
])('stops %s that does not end', (_what, work: () => boolean) => {
  const startedAt = performance.now();
  expect(runWithTimeout(50, work)).toBeNull();
  expect(performance.now() - startedAt).toBeLessThan(1_000 * TIME_FACTOR);
});
