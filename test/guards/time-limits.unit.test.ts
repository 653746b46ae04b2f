import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from '@jest/globals';

const TEST = resolve(import.meta.dirname, '..');

/** A time that was measured, held against a limit that does not take the speed of the machine into account. */
const MEASURED = /\bnow\(\) - \w+\)\.toBeLessThan(?:OrEqual)?\((?![^;]*TIME_FACTOR)/;

test('a limit of time allows for a slow machine', () => {
  const measured = (text: string) => MEASURED.test(text);
  expect(measured('expect(performance.now() - startedAt).toBeLessThan(1_000);')).toBe(true);
  expect(measured('expect(performance.now() - startedAt).toBeLessThan(1_000 * TIME_FACTOR);')).toBe(false);
  const files = globSync('**/*.ts', { cwd: TEST }).filter((file) => !file.startsWith('guards/time-limits.'));
  expect(files.length).toBeGreaterThan(500);
  // Use `expectWithin` or `expectComputedWithin`, or the shortest of several runs.
  expect(files.filter((file) => measured(readFileSync(resolve(TEST, file), 'utf8')))).toEqual([]);
});
