import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from '@jest/globals';

const ROOT = resolve(import.meta.dirname, '..', '..');

test('every promise of docs/security.md names tests that exist', () => {
  const sections = readFileSync(resolve(ROOT, 'docs/security.md'), 'utf8').split(/^## /m);
  // The other tables have guards of their own.
  const promises = sections.filter((section) => section.includes('\n| promise |'));
  const rows = promises.flatMap((section) =>
    section.split('\n').filter((line) => /^\| (?!promise)/.test(line)),
  );
  expect(rows.length).toBeGreaterThan(25);
  for (const row of rows) {
    const files = [...row.matchAll(/`(test\/[^`]+)`/g)].map(([, file = '']) => file);
    const missing = files.filter((file) => !existsSync(resolve(ROOT, file)));
    expect({ row, tests: files.length > 0, missing }).toEqual({ row, tests: true, missing: [] });
  }
});
