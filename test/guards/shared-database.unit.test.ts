import { globSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

test('tests on the shared database sweep only the objects of an organization: others expect theirs to be there', () => {
  const sweepsAll = /\bsweepObjects\([\w.]+, (?:[\w.]+|\{[^}]*\})\)/;
  const files = globSync('test/**/*.test.ts').filter((file) => {
    const text = readFileSync(file, 'utf8');
    return sweepsAll.test(text) && !text.includes('useIsolatedDatabase(');
  });
  expect(files).toEqual([]);
  expect(sweepsAll.test('sweepObjects(app.worker, app.storage)')).toBe(true);
});
