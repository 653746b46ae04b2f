import { existsSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { AREAS } from '../mutation/areas.ts';

// `npm run test:mutation` is not part of CI, so that a file that was moved would be noticed late.
describe.each(Object.entries(AREAS))('the area %s of the mutation tests', (_name, { files, tests }) => {
  test('names files that exist', () => {
    expect(files.length).toBeGreaterThan(0);
    expect([...files, ...tests].filter((file) => !existsSync(file))).toEqual([]);
  });
});
