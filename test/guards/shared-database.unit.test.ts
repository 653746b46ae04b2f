import { globSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const withoutOwnDatabase = (calls: RegExp): string[] =>
  globSync('test/**/*.test.ts').filter((file) => {
    const text = readFileSync(file, 'utf8');
    return calls.test(text) && !text.includes('useIsolatedDatabase(');
  });

test('tests on the shared database sweep only the objects of an organization: others expect theirs to be there', () => {
  const sweepsAll = /\bsweepObjects\([\w.]+, (?:[\w.]+|\{[^}]*\})\)/;
  expect(withoutOwnDatabase(sweepsAll)).toEqual([]);
  expect(sweepsAll.test('sweepObjects(app.worker, app.storage)')).toBe(true);
});

test('tests that read every organization have a database of their own: the shared one has thousands', () => {
  expect(withoutOwnDatabase(/\.startDailyRuns\(/)).toEqual([]);
});
