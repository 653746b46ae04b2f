import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { listSourceFiles } from './import-graph.ts';

/** Conditions `in (select … skip locked)`. */
function findViolations(source: string): string[] {
  return [...source.matchAll(/\bin \((?=\s*select\b)/gi)].flatMap(({ index, 0: start }) => {
    const subquery = readToClosing(source, index + start.length);
    return /\bskip locked\s*$/i.test(subquery) ? [subquery] : [];
  });
}

/** Typed statements: `.where(…, 'in', … .skipLocked())`. */
function findTypedViolations(source: string): string[] {
  return [...source.matchAll(/\.where\(/g)].flatMap(({ index, 0: start }) => {
    const condition = readToClosing(source, index + start.length);
    return /'in',/.test(condition) && /\.skipLocked\(\)/.test(condition) ? [condition] : [];
  });
}

/** The text up to the parenthesis that closes the one before `from`. */
function readToClosing(source: string, from: number): string {
  let depth = 1;
  for (let at = from; at < source.length; at += 1) {
    if (source[at] === '(') depth += 1;
    if (source[at] === ')') depth -= 1;
    if (depth === 0) return source.slice(from, at);
  }
  return '';
}

// PostgreSQL may run the subquery of `in` more than once, and locks other rows each time: a batch is then larger than its limit.
test('rows are locked in a subquery that runs once: = any(array(select … skip locked)), or anyLocked()', () => {
  const files = listSourceFiles(['domain', 'platform', 'workers']);
  const sources = files.map((file) => ({ file, source: readFileSync(file, 'utf8') }));
  expect(
    sources.filter(({ source }) => /= any\(array\(\s*select|anyLocked\(/.test(source)).length,
  ).toBeGreaterThan(10);
  expect(
    sources.flatMap(({ file, source }) =>
      [...findViolations(source), ...findTypedViolations(source)].map((condition) => ({ file, condition })),
    ),
  ).toEqual([]);
});

test('the guard finds a subquery that may run twice', () => {
  const batch = 'select id from outbox order by id limit 5 for update skip locked';
  expect(findViolations(`delete from outbox where id in (\n  ${batch})`)).toHaveLength(1);
  expect(findViolations(`delete from outbox where id = any(array(${batch}))`)).toEqual([]);
  const typed = "db.selectFrom('outbox').select('id').limit(5).forUpdate().skipLocked()";
  expect(findTypedViolations(`db.deleteFrom('outbox').where('id', 'in', ${typed})`)).toHaveLength(1);
  expect(findTypedViolations(`db.deleteFrom('outbox').where('id', '=', anyLocked(${typed}))`)).toEqual([]);
});
