import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { listSourceFiles } from './import-graph.ts';

const ROW_TYPE = /\binterface \w*Row\b[^{]*\{([^}]*)\}/g;
const INLINE_ROW = /\b(?:execute|query)<\{([^}]*)\}/g;
const SNAKE_CASE_FIELD = /(?:^|[;{\s])([a-z]+_[a-z_]+)\??:/g;

function findSnakeCaseFields(source: string): string[] {
  const bodies = [...source.matchAll(ROW_TYPE), ...source.matchAll(INLINE_ROW)].map(([, body = '']) => body);
  return bodies.flatMap((body) => [...body.matchAll(SNAKE_CASE_FIELD)].map(([, field = '']) => field));
}

test('rows of plain SQL have the property names of entities, not column names', () => {
  const sources = listSourceFiles(['domain', 'platform', 'workers']).map((file) =>
    readFileSync(file, 'utf8'),
  );
  expect(sources.filter((source) => source.search(ROW_TYPE) !== -1).length).toBeGreaterThan(5);
  expect(sources.flatMap(findSnakeCaseFields)).toEqual([]);
});

const READ_CALL =
  /^ {4}(?:async )?((?:get|list|find|read)[A-Za-z]*)(?:\(|: )[^;]*?database\s*\.(read|transaction)\(/gm;

function findWritableReads(room: string, source: string): string[] {
  return [...source.matchAll(READ_CALL)]
    .filter(([, , call]) => call === 'transaction')
    .map(([, name]) => `${room} ${name}`);
}

test('use-cases that only read use a read-only transaction', () => {
  const services = listSourceFiles(['domain']).filter((file) => file.endsWith('.service.ts'));
  const reads = services.flatMap((file) => {
    const room = /domain\/([\w-]+)\//.exec(file)?.[1] ?? '';
    return findWritableReads(room, readFileSync(file, 'utf8'));
  });
  expect(services.length).toBeGreaterThan(20);
  expect(reads).toEqual([]);
});

test('the guard finds use-cases that read in a writable transaction', () => {
  const source =
    '  return {\n    get: (scope, id) => database.transaction(scope, ({ db }) => find(db, id)),\n';
  expect(findWritableReads('things', source)).toEqual(['things get']);
  expect(findWritableReads('things', source.replace('transaction', 'read'))).toEqual([]);
});

test('the guard finds column names in named and inline row types', () => {
  expect(findSnakeCaseFields('interface KeyRow {\n  org_id: string;\n  name: string;\n}')).toEqual([
    'org_id',
  ]);
  expect(findSnakeCaseFields('query<{ id: string; env_id: string }>(database, sql`select 1`)')).toEqual([
    'env_id',
  ]);
});
