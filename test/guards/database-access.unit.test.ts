import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { listSourceFiles } from './import-graph.ts';
import { ownerOf } from './table-writers.ts';

/** Folders that do not yet reach PostgreSQL by typed statements alone. None may be added; a converted one goes. */
const NOT_CONVERTED = new Set<string>();

/** Statements that Kysely cannot express, as text, with the reason for each file. */
const TEXT_STATEMENTS: Record<string, { count: number; reason: string }> = {
  'platform/database/advisory-lock.ts': { count: 2, reason: 'A function without a table.' },
  'platform/installation/reencrypt.ts': {
    count: 3,
    reason: 'The tables and columns are those of all rooms.',
  },
  'platform/outbox/outbox.ts': {
    count: 1,
    reason: 'Recursive steps along an index, with a lateral share for each organization.',
  },
};
const MAX_TEXT_STATEMENTS = 40;

/** Entity managers, their statements, and the functions that built statements of entities. */
const OLD_WAYS: readonly RegExp[] = [
  /\bem\.[a-z]|[({,]\s*em\b\s*[,:})]/,
  /\bEntityManager\b/,
  /\b(?:sql|raw|LockMode|QueryOrder|RawQueryFragment)\b[^;]*from '@mikro-orm\//,
  /database\/(?:find-rows|find-page|write-rows|row-filter|delete-rows|sql|bridge|serialized-row)\.ts'/,
  /\bdatabase\s*\.(?:query|autocommit)\b/,
  /\b(?:reader|transaction)\s*\.execute\b/,
];

const files = listSourceFiles(['api', 'activities', 'domain', 'platform', 'workers']);
const FOUNDATION = 'platform/database';

const usesOldWays = (source: string): boolean => OLD_WAYS.some((way) => way.test(source));

/** Whole statements as text: `sql`…`.execute(db)`. */
function countTextStatements(source: string): number {
  const withoutValues = source.replace(/\$\{[^{}`]*\}/g, '');
  return [...withoutValues.matchAll(/\bsql(?:<[^`]*?>)?`[^`]*`\s*\.execute\(/g)].length;
}

test('typed statements are the one way to the database in all folders but the listed ones', () => {
  const folders = new Set(
    files
      .filter((file) => ownerOf(file) !== FOUNDATION && usesOldWays(readFileSync(file, 'utf8')))
      .map(ownerOf),
  );
  expect([...folders].sort()).toEqual([...NOT_CONVERTED].sort());
});

test('few statements are text, each for a reason', () => {
  const found = files
    .map((file) => ({ file, count: countTextStatements(readFileSync(file, 'utf8')) }))
    .filter(({ count }) => count > 0);
  expect(Object.fromEntries(found.map(({ file, count }) => [file, count]))).toEqual(
    Object.fromEntries(Object.entries(TEXT_STATEMENTS).map(([file, { count }]) => [file, count])),
  );
  expect(found.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(MAX_TEXT_STATEMENTS);
});

test('only Database and its parts make typed statements, and only constants become text', () => {
  const sources = files.map((file) => ({ file, source: readFileSync(file, 'utf8') }));
  const filesWith = (pattern: RegExp) =>
    sources.filter(({ source }) => pattern.test(source)).map(({ file }) => file);
  expect(filesWith(/\bgetKysely\(|new Kysely\b/)).toEqual(['platform/database/typed-connection.ts']);
  expect(filesWith(/\bsql\.(?:lit|raw)\((?!\s*[A-Z_]+\))/)).toEqual([]);
  expect(filesWith(/executeTakeFirstOrThrow\(\s*\)/)).toEqual([]);
});

test('the guard recognizes old ways and text', () => {
  expect(usesOldWays("import { sql } from '@mikro-orm/core';")).toBe(true);
  expect(usesOldWays("import { defineEntity, p } from '@mikro-orm/core';")).toBe(false);
  expect(usesOldWays('async function find({ em }: Transaction) {')).toBe(true);
  expect(usesOldWays("await db.selectFrom('plans').select('id').execute();")).toBe(false);
  const value = '$' + '{id}';
  expect(countTextStatements(`await sql<Row>\`select ${value}\`.execute(db)`)).toBe(1);
  expect(countTextStatements('db.selectFrom("a").select(sql<number>`1`.as("one")).execute()')).toBe(0);
});
