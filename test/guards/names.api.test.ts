import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();

interface Concept {
  name: string;
  aliases: string[];
  /** Finds every name that looks like the concept. */
  pattern: RegExp;
}

/** Rows of the table: concept, name, aliases with where they occur, pattern. */
function readTable(): Concept[] {
  const page = readFileSync(new URL('../../docs/names.md', import.meta.url), 'utf8');
  return page
    .split('\n')
    .filter((line) => /^\| .*`/.test(line))
    .map((line) => {
      const [, , name = '', aliases = '', pattern = ''] = line.replaceAll('\\|', '\u0000').split('|');
      const words = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);
      return {
        name: words(name)[0] ?? '',
        aliases: words(aliases),
        pattern: new RegExp(words(pattern)[0]?.replaceAll('\u0000', '|') ?? '(?!)'),
      };
    });
}

/** The names of all fields and query parameters, in requests, responses and events. */
function collectNames(): Set<string> {
  const names = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('properties' in value && typeof value.properties === 'object')
      for (const name of Object.keys(value.properties ?? {})) names.add(name);
    for (const member of Object.values(value)) visit(member);
  };
  visit(app.contract.description);
  for (const { parameters = [] } of app.contract.operations)
    for (const { name, in: where } of parameters) if (where === 'query') names.add(name);
  return names;
}

test('each concept has the name of docs/names.md, and no other than its listed aliases', () => {
  const names = collectNames();
  const concepts = readTable();
  expect(concepts.length).toBeGreaterThan(10);
  expect(names.size).toBeGreaterThan(100);
  for (const { name, aliases, pattern } of concepts) {
    const listed = [name, ...aliases].sort();
    const found = [...names].filter((candidate) => pattern.test(candidate)).sort();
    expect({ name, found }).toEqual({ name, found: listed });
  }
});
