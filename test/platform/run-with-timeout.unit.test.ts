import { expect, test } from '@jest/globals';
import { runWithTimeout } from '../../platform/run-with-timeout.ts';

test('work that ends in time returns what it returns', () => {
  expect(runWithTimeout(1_000, () => ['done'])).toEqual(['done']);
});

test('work that fails fails', () => {
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
])('%s that does not end is stopped', (_what, work: () => boolean) => {
  const startedAt = performance.now();
  expect(runWithTimeout(50, work)).toBeNull();
  expect(performance.now() - startedAt).toBeLessThan(1_000);
});
