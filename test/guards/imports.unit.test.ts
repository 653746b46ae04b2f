import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from '@jest/globals';

interface Import {
  file: string;
  /** Repository path of what is imported, or the name of a package. */
  target: string;
  typeOnly: boolean;
}

const ROOMS = ['api', 'domain', 'platform', 'workflows', 'activities', 'workers', 'migrations'];
const files = ROOMS.flatMap((room) => globSync(`${room}/**/*.ts`)).sort();
const STATEMENT = /^\s*(?:import|export)\s+(type\s)?(?:[^'"]*?\sfrom\s+)?['"]([^'"]+)['"]/gm;
const DYNAMIC = /\bimport\(\s*['"]([^'"]+)['"]/g;

const importsOf = (file: string): Import[] => {
  const source = readFileSync(file, 'utf8');
  const found = [
    ...[...source.matchAll(STATEMENT)].map(([, type, name]) => ({
      name: name ?? '',
      typeOnly: type !== undefined,
    })),
    ...[...source.matchAll(DYNAMIC)].map(([, name]) => ({ name: name ?? '', typeOnly: false })),
  ];
  return found.map(({ name, typeOnly }) => ({
    file,
    typeOnly,
    target: name.startsWith('.') ? normalize(join(dirname(file), name)) : name,
  }));
};
const imports = files.flatMap(importsOf);

const roomOf = (path: string) => path.split('/')[0] ?? '';
const isOwn = ({ target }: Import) => ROOMS.includes(roomOf(target)) && target.endsWith('.ts');
const isContract = (path: string) => path.endsWith('.contract.ts');
const show = ({ file, target }: Import) => `${file} → ${target}`;

test('there is something to look at', () => {
  expect(files.length).toBeGreaterThan(80);
  expect(imports.length).toBeGreaterThan(400);
});

describe('what a room may import', () => {
  const MAY: Record<string, string[]> = {
    platform: ['platform'],
    domain: ['domain', 'platform'],
    activities: ['activities', 'domain', 'platform'],
    api: ['api', 'domain', 'platform'],
    workflows: ['workflows'],
    migrations: ['platform'],
  };

  test.each(Object.entries(MAY))('%s: %j and contracts', (room, allowed) => {
    const broken = imports
      .filter((entry) => roomOf(entry.file) === room && isOwn(entry))
      .filter(({ target }) => !allowed.includes(roomOf(target)))
      .filter(({ target }) => room === 'platform' || !isContract(target))
      .filter(
        ({ target, typeOnly }) => !(room === 'workflows' && typeOnly && roomOf(target) === 'activities'),
      );
    expect(broken.map(show)).toEqual([]);
  });

  test('workflows know the SDK and nothing of Node', () => {
    const foreign = imports.filter((entry) => roomOf(entry.file) === 'workflows' && !isOwn(entry));
    expect(
      foreign.filter(({ target }) => !/^@temporalio\/(workflow|common)$/.test(target)).map(show),
    ).toEqual([]);
  });

  test('contracts import contracts and types', () => {
    const broken = imports.filter(
      ({ file, target, typeOnly }) => isContract(file) && !typeOnly && !isContract(target),
    );
    expect(broken.map(show)).toEqual([]);
  });

  test('routes and schemas know neither the entity manager nor the database', () => {
    const routes = imports.filter(({ file, typeOnly }) => /\.(routes|schemas)\.ts$/.test(file) && !typeOnly);
    const broken = routes.filter(
      ({ target }) => target.startsWith('@mikro-orm') || target.startsWith('platform/database'),
    );
    expect(routes.length).toBeGreaterThan(30);
    expect(broken.map(show)).toEqual([]);
  });
});

test('no file imports itself by a detour', () => {
  const edges = Map.groupBy(
    imports.filter((entry) => isOwn(entry) && !entry.typeOnly),
    ({ file }) => file,
  );
  const state = new Map<string, 'open' | 'done'>();
  const cycles: string[] = [];
  const visit = (file: string, trail: string[]): void => {
    if (state.get(file) === 'done') return;
    if (state.get(file) === 'open')
      return void cycles.push([...trail.slice(trail.indexOf(file)), file].join(' → '));
    state.set(file, 'open');
    for (const { target } of edges.get(file) ?? []) visit(target, [...trail, file]);
    state.set(file, 'done');
  };
  for (const file of files) visit(file, []);
  expect(cycles).toEqual([]);
});

test('the environment is read in platform/config.ts alone', () => {
  const readers = files.filter((file) => /process\.env\b/.test(readFileSync(file, 'utf8')));
  expect(readers).toEqual(['platform/config.ts']);
});

test('names say what a file is', () => {
  const vague = files.filter((file) => /(^|[/-])(utils?|helpers?|common|manager|handler)[-./]/.test(file));
  expect(vague).toEqual([]);
  // The ORM names migrations with an underscore.
  for (const file of files)
    expect(file.replace(/^migrations\/Migration\d+_\w+/, 'migration')).toMatch(/^[a-zA-Z0-9/.-]+\.ts$/);
});
