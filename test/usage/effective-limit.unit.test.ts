import { expect, test } from '@jest/globals';
import { percentageOf } from '../../domain/usage/effective-limit.ts';

test.each([
  [0, 3_000, 0],
  [2_412, 3_000, 80.4],
  [911, 3_000, 30.37],
  [3_000, 3_000, 100],
  [9_000, 3_000, 300],
  // Below the limit, rounding never yields 100.
  [99_999, 100_000, 99.99],
  [Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER, 99.99],
  [0, 0, 100],
  [5, 0, 100],
  [5, null, 0],
])('%d of %p is %d %%', (current, limit, expected) => {
  expect(percentageOf(current, limit)).toBe(expected);
});
