import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { useTestApp } from '../support/resources.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.includes('decisions'))
    .map((name) => join('docs', name)),
];
const METHOD = 'GET|POST|PUT|PATCH|DELETE';

const app = useTestApp();

test('operations that the documentation names exist', () => {
  const known = new Set(
    Object.entries(app.contract.description.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${withoutNames(path)}`),
    ),
  );
  const named = PAGES.flatMap((page) => listOperations(page));
  expect(named.length).toBeGreaterThan(250);
  const unknown = named.filter(
    ({ method, path }) =>
      !['', '/api/v1', '/api/v1/admin'].some((prefix) =>
        known.has(`${method} ${prefix}${withoutNames(path)}`),
      ),
  );
  expect(unknown.map(({ page, method, path }) => `${page}: ${method} ${path}`)).toEqual([]);
});

interface Named {
  page: string;
  method: string;
  path: string;
}

/** In code spans: `GET·PATCH /inboxes/{id}`, `POST /drafts/{id}/send·approve`. */
function listOperations(page: string): Named[] {
  const text = readFileSync(join(ROOT, page), 'utf8').replace(/^```[\s\S]*?^```/gm, '');
  const spans = [...text.matchAll(new RegExp(`\`((?:${METHOD})(?:·(?:${METHOD}))*) (/[^\`\\s]*)`, 'g'))];
  return spans.flatMap(([, methods = '', address = '']) => {
    const [path = ''] = address.split(/[?#]/);
    return methods
      .split('·')
      .flatMap((method) => expandPath(path).map((each) => ({ page, method, path: each })));
  });
}

/** The paths that one with alternatives means. */
function expandPath(path: string): string[] {
  const segments = path.split('/');
  const index = segments.findIndex((segment) => segment.includes('·'));
  if (index < 0) return [path];
  return (segments[index] ?? '')
    .split('·')
    .flatMap((name) => expandPath(segments.with(index, name).join('/')));
}

/** Parameters have other names in the description, or show their values, and examples have ids: `{id}`, `{send,receive}`, `org_…`. */
const withoutNames = (path: string): string =>
  path
    .replace(/\{[^}]*\}|\b[a-z]+_…/g, '{}')
    .replace(/[….,]+$/, '')
    .replace(/(?<=.)\/$/, '');
