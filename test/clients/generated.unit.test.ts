import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { printClients } from '../../clients/generate/files.ts';
import { readModel } from '../../clients/generate/model.ts';
import { AgentEmail, VERSION } from '../../clients/typescript/src/index.ts';

const model = await readModel();

test.each(Object.entries(printClients(model)))(
  'npm run generate:clients would leave %s as it is',
  (path, text) => {
    expect(readFileSync(path, 'utf8') === text).toBe(true);
  },
);

test('the TypeScript client has a method for every operation, and no other', () => {
  const client = new AgentEmail({ apiKey: 'ask_test', baseUrl: 'http://localhost' });
  const has = (operationId: string) => {
    const [group = '', name = ''] = operationId.split('.');
    const methods = (client as unknown as Record<string, Record<string, unknown>>)[group];
    return typeof methods?.[name] === 'function';
  };
  const operationIds = model.groups.flatMap(({ methods }) => methods.map(({ operationId }) => operationId));
  expect(operationIds.filter((operationId) => !has(operationId))).toEqual([]);
  const methods = Object.entries(client).flatMap(([group, resource]) =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(resource))
      .filter((name) => name !== 'constructor' && resource.constructor.name.endsWith('Resource'))
      .map((name) => `${group}.${name}`),
  );
  expect(methods.sort()).toEqual(operationIds.sort());
});

test('the table of methods in the README names methods that exist', () => {
  const client = new AgentEmail({ apiKey: 'ask_test', baseUrl: 'http://localhost' });
  const readme = readFileSync('clients/typescript/README.md', 'utf8');
  const [, table = ''] = /\| task \| methods \|\n\|.*\n([\s\S]*?)\n\n/.exec(readme) ?? [];
  let group = '';
  const named = [...table.replace(/\([^)]*\)/g, '').matchAll(/`(?:(\w+)\.)?(\w+)`/g)].map(
    ([, given, method = '']) => {
      group = given ?? group;
      return { group, method, isGrouped: given !== undefined };
    },
  );
  const has = (owner: unknown, method: string) =>
    typeof (owner as Record<string, unknown> | undefined)?.[method] === 'function';
  const unknown = named.filter(
    ({ group: owner, method, isGrouped }) =>
      !has((client as unknown as Record<string, unknown>)[owner], method) &&
      (isGrouped || !has(client, method)),
  );
  expect(named.length).toBeGreaterThan(40);
  expect(unknown).toEqual([]);
});

test('the version that clients send is that of the package', () => {
  const { version } = JSON.parse(readFileSync('clients/typescript/package.json', 'utf8')) as {
    version: string;
  };
  expect(VERSION).toBe(version);
});

test('what is written by hand has at most 1,000 lines of code', () => {
  const files = globSync('clients/typescript/src/*.ts').map((file) => readFileSync(file, 'utf8'));
  const lines = files.flatMap((text) => text.split('\n')).filter((line) => !/^\s*($|\/\/|\/?\*)/.test(line));
  expect(lines.length).toBeGreaterThan(500);
  expect(lines.length).toBeLessThanOrEqual(1_000);
});

test('the clients and the examples import nothing of the service', () => {
  const files = globSync(['clients/{typescript,cli}/src/**/*.ts', 'examples/**/*.ts']);
  expect(files.length).toBeGreaterThan(20);
  const outside = files.flatMap((file) => {
    const [, client = file.split('/')[0]] = /^(clients\/[a-z]+\/src)/.exec(file) ?? [];
    const specifiers = [...readFileSync(file, 'utf8').matchAll(/\bfrom '(\.[^']*)'/g)].map(
      ([, one = '']) => one,
    );
    // The CLI bundles the client.
    const allowed = [`${client}/`, 'clients/typescript/src/'];
    return specifiers
      .filter((one) => !allowed.some((folder) => join(dirname(file), one).startsWith(folder)))
      .map((one) => `${file} → ${one}`);
  });
  expect(outside).toEqual([]);
});
