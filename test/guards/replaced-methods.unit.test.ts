import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { listSourceFiles } from './import-graph.ts';

/**
 * Files that replace methods of other packages, or override undocumented ones, with the test that fails if a new version of the
 * package no longer calls them. The docstring says until when: "Needed until …".
 */
const REPLACED: Record<string, { of: string; test: string }> = {
  'api/plugins/plugin-names.ts': { of: 'fastify', test: 'test/api/plugin-names.unit.test.ts' },
  'domain/connections/authorization-server.ts': {
    of: 'oidc-provider',
    test: 'test/connections/authorization.api.test.ts',
  },
  'domain/mime/limit-nesting.ts': { of: 'htmlparser2', test: 'test/mime/limit-nesting.unit.test.ts' },
  'domain/mime/mime-reader.ts': { of: 'mailparser', test: 'test/mime/mime-reader.unit.test.ts' },
  'platform/database/prepared-query.ts': { of: 'pg', test: 'test/platform/prepared-statements.api.test.ts' },
  'platform/deny-network.ts': { of: 'node:', test: 'test/attachments/file-reader.unit.test.ts' },
};

const WAYS: readonly RegExp[] = [
  /\.prototype\b/,
  /\bObject\.(?:defineProperty|defineProperties|setPrototypeOf)\(/,
  /\bReflect\.(?:set|defineProperty|setPrototypeOf)\(/,
  // A class whose hidden methods are made visible.
  / as unknown as (?:abstract )?new\b/,
  / as unknown as typeof \w+\.\w+/,
  /\bprotected override\b/,
  // A method of an object. Own objects are excluded, and handlers of routes, which Fastify passes to `onRoute` as options.
  /^\s*(?!this\.|route\.handler\b|(?:claim|health)\.)[a-z]\w*(?:\.\w+)* *\. *\w+ = (?:async )?(?:function\b|\([^)]*\)(?:: [^=]+)? =>|\w+ =>)/m,
  /\bObject\.assign\((?:app|client|connection|parser|platform|pool|server|socket)\b/,
];

const replacesMethods = (source: string): boolean => WAYS.some((way) => way.test(source));

test('methods of other packages are replaced only where nothing public does it', () => {
  const found = listSourceFiles([
    'activities',
    'api',
    'web',
    'domain',
    'platform',
    'workers',
    'workflows',
  ]).filter((file) => replacesMethods(readFileSync(file, 'utf8')));
  expect(found).toEqual(Object.keys(REPLACED));
});

test.each(Object.entries(REPLACED))(
  '%s names its package and what ends it, and is tested',
  (file, { of, test }) => {
    const source = readFileSync(file, 'utf8').replace(/\n *\* /g, ' ');
    expect(source).toContain(`from '${of}`);
    expect(source).toContain('Needed until ');
    expect(readFileSync(test, 'utf8')).toContain('test(');
  },
);

test.each([
  ['a method', 'connection.send = (code) => log(code);'],
  ['a method by function', '  connection.send = async function (code) {'],
  ['a method of a part', 'server.connection._onCommand = (command, callback) => {'],
  ['a method by assignment', 'Object.assign(client, { query: traced });'],
  ['a method of all instances', 'Client.prototype.query = traced;'],
  ['a class with hidden methods', 'const Base = Parser as unknown as new () => OpenParser;'],
])('finds a replaced %s', (_case, source) => {
  expect(replacesMethods(source)).toBe(true);
});

test.each([
  'this.closed = () => undefined;',
  'const isOpen = () => true;',
  'row.state = next;',
  'export const close = (pool) => pool.end();',
])('does not mistake %j for one', (source) => {
  expect(replacesMethods(source)).toBe(false);
});
