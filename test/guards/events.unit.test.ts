import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { EVENT_TYPES } from '../../domain/events/event-types.ts';

const ROOT = resolve(import.meta.dirname, '..', '..');
const TESTS = globSync('test/**/*.test.ts', { cwd: ROOT })
  .filter((file) => !file.startsWith('test/guards/'))
  .map((file) => readFileSync(resolve(ROOT, file), 'utf8'));

test.each(EVENT_TYPES)('%s is expected by some test', (type) => {
  expect(TESTS.some((text) => text.includes(`'${type}'`))).toBe(true);
});
