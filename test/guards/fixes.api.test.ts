import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { WRONG_GUESSES } from '../../api/plugins/wrong-guesses.ts';
import { existsOperation, listNamedOperations, type NamedOperation } from '../support/named-operations.ts';
import { useTestApp } from '../support/resources.ts';
import { listSourceFiles } from './import-graph.ts';

const app = useTestApp();
const ROOT = resolve(import.meta.dirname, '../..');

/** Operations that are described nowhere. */
const UNDESCRIBED = [{ method: 'GET', path: '/openapi.json' }];
const operations = () => [...app.contract.operations, ...UNDESCRIBED];

/** The code of a file without comments, with `{}` for each expression of a template. */
function readCode(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '')
    .replace(/\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}/g, '{}');
}

/** Texts of every `fix`, with the constants and functions that it uses being texts elsewhere in the file. */
function listFixes(code: string): string[] {
  return [...code.matchAll(/\bfix(?::|\([^)]*\) =>)\s*/g)].map(({ index }) => readExpression(code, index));
}

/** Reads from a position to the comma, semicolon or bracket that ends the expression there. */
function readExpression(code: string, start: number): string {
  let depth = 0;
  let quote = '';
  for (let index = start; index < code.length; index += 1) {
    const character = code[index] ?? '';
    if (quote !== '') {
      if (character === '\\') index += 1;
      else if (character === quote) quote = '';
    } else if (/['"`]/.test(character)) quote = character;
    else if (/[([{]/.test(character)) depth += 1;
    else if (/[)\]}]/.test(character)) depth -= 1;
    if (quote === '' && (depth < 0 || (depth === 0 && /[,;]/.test(character))))
      return code.slice(start, index);
  }
  return code.slice(start);
}

const describeNamed = (file: string, { method, path }: NamedOperation) => `${file}: ${method ?? ''} ${path}`;

const sources = listSourceFiles(['api', 'web', 'domain', 'platform', 'activities', 'workers']).filter(
  // The table of guesses has paths below /api/v1, which a test below checks.
  (file) => !file.endsWith('wrong-guesses.ts'),
);

test('every fix names operations that exist, with their whole path', () => {
  const named = sources.flatMap((file) =>
    listFixes(readCode(file)).flatMap((fix) =>
      listNamedOperations(fix).map((operation) => ({ file, operation })),
    ),
  );
  expect(named.length).toBeGreaterThan(100);
  const unknown = named.filter(({ operation }) => !existsOperation(operation, operations()));
  expect(unknown.map(({ file, operation }) => describeNamed(file, operation))).toEqual([]);
});

test('every other text of the code names operations that exist', () => {
  const named = sources.flatMap((file) =>
    listNamedOperations(readCode(file)).map((operation) => ({ file, operation })),
  );
  expect(named.length).toBeGreaterThan(150);
  const exists = ({ method, path }: NamedOperation) =>
    ['', '/api/v1', '/api/v1/admin'].some((prefix) =>
      existsOperation({ method, path: `${prefix}${path}` }, operations()),
    );
  const unknown = named.filter(({ operation }) => !exists(operation));
  expect(unknown.map(({ file, operation }) => describeNamed(file, operation))).toEqual([]);
});

test('every wrong guess leads to an operation that exists, and is none itself', () => {
  const documented = operations().map(({ method, path }) => `${method} ${path}`);
  for (const { operation, paths, methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] } of WRONG_GUESSES) {
    const [method = '', path = ''] = operation.split(' ');
    expect(documented).toContain(`${method} /api/v1${path}`);
    for (const guess of paths)
      for (const each of methods)
        expect({ guess: `${each} ${guess}`, exists: isOperation(each, `/api/v1/${guess}`) }).toEqual({
          guess: `${each} ${guess}`,
          exists: false,
        });
  }
});

/** A guess's `*` stands for a parameter. */
function isOperation(method: string, guess: string): boolean {
  const shape = (path: string) => path.replace(/\{\w+\}/g, '*');
  return operations().some((each) => each.method === method && shape(each.path) === guess);
}

test('reads expressions, methods and templates', () => {
  const code = readExpression("fix: a ? 'Use (x), POST /api/v1/a.' : b({ c: 1 }), detail: 'GET /no' }", 0);
  expect(code).toBe("fix: a ? 'Use (x), POST /api/v1/a.' : b({ c: 1 })");
  expect(
    listNamedOperations('GET and PUT /api/v1/org/limits; DELETE /api/v1/a/{}/b. See /api/v1/c.'),
  ).toEqual([
    { method: 'GET', path: '/api/v1/org/limits' },
    { method: 'PUT', path: '/api/v1/org/limits' },
    { method: 'DELETE', path: '/api/v1/a/{}/b' },
    { method: undefined, path: '/api/v1/c' },
  ]);
  expect(existsOperation({ method: 'POST', path: '/api/v1/none' }, operations())).toBe(false);
});
