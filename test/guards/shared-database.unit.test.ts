import { globSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const tests = globSync('test/**/*.test.ts').map((file) => ({ file, text: readFileSync(file, 'utf8') }));

const onSharedDatabase = (calls: RegExp): string[] =>
  tests
    .filter(({ text }) => calls.test(text) && !text.includes('useIsolatedDatabase('))
    .map(({ file }) => file);

test('tests on the shared database sweep only the objects of an organization: others expect theirs to be there', () => {
  const sweepsAll = /\bsweepObjects\([\w.]+, (?:[\w.]+|\{[^}]*\})\)/;
  expect(onSharedDatabase(sweepsAll)).toEqual([]);
  expect(sweepsAll.test('sweepObjects(app.worker, app.storage)')).toBe(true);
});

test('tests that read every organization have a database of their own: the shared one has thousands', () => {
  const readsAll = /\.startDailyRuns\(/;
  expect(onSharedDatabase(readsAll)).toEqual([]);
  expect(tests.some(({ text }) => readsAll.test(text))).toBe(true);
});
