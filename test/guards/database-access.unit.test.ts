import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { listSourceFiles } from './import-graph.ts';

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

/** Entity managers, and functions that built statements of entities. */
const OLD_WAYS: readonly RegExp[] = [
  /\bem\.[a-z]|[({,]\s*em\b\s*[,:})]/,
  /\bEntityManager\b/,
  /\b(?:sql|raw|wrap|LockMode|QueryOrder|RawQueryFragment)\b[^;]*from '@mikro-orm\//,
  /\b(?:function |const )(?:find|insert|update|delete|query)Rows?\b/,
  /\bautocommit\b/,
];

/** MikroORM describes the schema and runs migrations. No other file starts it. */
const ORM_USERS = [
  'dev/create-migration.ts',
  'platform/database/orm-options.ts',
  'test/support/orm.ts',
  'workers/migrate.ts',
];

const files = listSourceFiles(['api', 'web', 'activities', 'domain', 'platform', 'workers']);
const everyFile = [...files, ...listSourceFiles(['bench', 'dev', 'test'])].filter(
  (file) => file !== 'test/guards/database-access.unit.test.ts',
);

/** Without imports of types. */
const runtimeImports = (file: string): string =>
  readFileSync(file, 'utf8').replace(/^import type [^;]*;/gm, '');

const usesOldWays = (source: string): boolean => OLD_WAYS.some((way) => way.test(source));

/** Whole statements as text: `sql`…`.execute(db)`. */
function countTextStatements(source: string): number {
  const withoutValues = source.replace(/\$\{[^{}`]*\}/g, '');
  return [...withoutValues.matchAll(/\bsql(?:<[^`]*?>)?`[^`]*`\s*\.execute\(/g)].length;
}

test('typed statements are the one way to the database', () => {
  expect(everyFile.length).toBeGreaterThan(1_000);
  expect(everyFile.filter((file) => usesOldWays(readFileSync(file, 'utf8')))).toEqual([]);
});

test('only schema and migrations use MikroORM', () => {
  const users = everyFile.filter((file) =>
    /from '@mikro-orm\/(?:postgresql|migrations)'/.test(runtimeImports(file)),
  );
  expect(users.sort()).toEqual(ORM_USERS);
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
