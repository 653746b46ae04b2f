import { expect, test } from '@jest/globals';
import { choosePartSize } from '../../domain/exports/archive-size.ts';

const MEBIBYTE = 1024 ** 2;
const GIBIBYTE = 1024 ** 3;

test.each([
  [0, 5],
  [39 * GIBIBYTE, 5],
  [40 * GIBIBYTE, 6],
  [1024 * GIBIBYTE, 132],
])('splits an archive of %i bytes into parts of %i MiB', (bytes, part) => {
  expect(choosePartSize(bytes, 5 * MEBIBYTE)).toBe(part * MEBIBYTE);
  // S3 allows 10,000 parts.
  expect(bytes / (part * MEBIBYTE)).toBeLessThan(9_000);
});
