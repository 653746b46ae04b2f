import { expect, test } from '@jest/globals';
import { percentile } from '../../bench/measure.ts';

const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);

test.each([
  { values: hundred, share: 0.99, expected: 99 },
  { values: hundred, share: 0.5, expected: 50 },
  { values: [3, 1, 2], share: 0.5, expected: 2 },
  { values: [7], share: 0.99, expected: 7 },
  { values: [], share: 0.99, expected: Number.NaN },
])('the percentile $share is $expected, by the nearest rank', ({ values, share, expected }) => {
  expect(percentile(values, share)).toBe(expected);
});
