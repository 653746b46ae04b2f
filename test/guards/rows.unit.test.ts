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

test('the guard finds column names in named and inline row types', () => {
  expect(findSnakeCaseFields('interface KeyRow {\n  org_id: string;\n  name: string;\n}')).toEqual([
    'org_id',
  ]);
  expect(findSnakeCaseFields('em.execute<{ id: string; env_id: string }[]>(sql`select 1`)')).toEqual([
    'env_id',
  ]);
});
