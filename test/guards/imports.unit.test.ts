import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import {
  circlesIn,
  crowdedFolders,
  type Import,
  importsIn,
  roomEdges,
  roomOf,
  sourceFiles,
} from './import-graph.ts';

const FOLDERS = ['api', 'domain', 'platform', 'workflows', 'activities', 'workers', 'migrations'];
const MAX_FILES_IN_A_FOLDER = 35;

const files = sourceFiles(FOLDERS);
const imports = files.flatMap((file) => importsIn(file));

const folderOf = (path: string) => path.split('/')[0] ?? '';
const isOwn = ({ target }: Import) => FOLDERS.includes(folderOf(target)) && target.endsWith('.ts');
const isContract = (path: string) => path.endsWith('.contract.ts');
const show = ({ file, target }: Import) => `${file} → ${target}`;

test('reads the whole repository', () => {
  expect(files.length).toBeGreaterThan(300);
  expect(imports.length).toBeGreaterThan(1_500);
});

describe('what a folder may import', () => {
  const MAY: Record<string, string[]> = {
    platform: ['platform'],
    domain: ['domain', 'platform'],
    activities: ['activities', 'domain', 'platform'],
    api: ['api', 'domain', 'platform'],
    workflows: ['workflows'],
    migrations: ['platform'],
  };

  test.each(Object.entries(MAY))('%s imports %j and contracts', (folder, allowed) => {
    const broken = imports
      .filter((entry) => folderOf(entry.file) === folder && isOwn(entry))
      .filter(({ target }) => !allowed.includes(folderOf(target)))
      .filter(({ target }) => folder === 'platform' || !isContract(target))
      .filter(
        ({ target, typeOnly }) => !(folder === 'workflows' && typeOnly && folderOf(target) === 'activities'),
      );
    expect(broken.map(show)).toEqual([]);
  });

  test('workflows import the Temporal SDK and nothing of Node', () => {
    const foreign = imports.filter((entry) => folderOf(entry.file) === 'workflows' && !isOwn(entry));
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

  test('routes and schemas import neither the entity manager nor the database', () => {
    const routes = imports.filter(({ file, typeOnly }) => /\.(routes|schemas)\.ts$/.test(file) && !typeOnly);
    const broken = routes.filter(
      ({ target }) => target.startsWith('@mikro-orm') || target.startsWith('platform/database'),
    );
    expect(routes.length).toBeGreaterThan(30);
    expect(broken.map(show)).toEqual([]);
  });
});

describe('rooms', () => {
  test('the graph of rooms has no circle, types included', () => {
    expect(new Set(roomEdges(imports).map(([from]) => from)).size).toBeGreaterThan(15);
    expect(circlesIn(roomEdges(imports))).toEqual([]);
  });

  test('files of a room do not import files of domain/ that no room owns', () => {
    const broken = imports.filter(
      ({ file, target }) =>
        roomOf(file) !== undefined && target.startsWith('domain/') && roomOf(target) === undefined,
    );
    expect(broken.map(show)).toEqual([]);
  });

  test('no file imports itself through others, types included', () => {
    // Two tables may refer to each other: each names the other in a function that runs later.
    const own = imports
      .filter(isOwn)
      .filter(({ file, target }) => !(file.endsWith('.entity.ts') && target.endsWith('.entity.ts')));
    expect(circlesIn(own.map(({ file, target }) => [file, target]))).toEqual([]);
  });

  test(`no folder holds more than ${MAX_FILES_IN_A_FOLDER} files`, () => {
    expect(crowdedFolders(files, MAX_FILES_IN_A_FOLDER)).toEqual([]);
  });
});

describe('the guard finds what it looks for', () => {
  const planted = (sources: Record<string, string>) =>
    Object.entries(sources).flatMap(([file, source]) => importsIn(file, source));

  test('a circle of rooms, even of types alone', () => {
    const found = planted({
      'domain/mail/send.ts': `import type { Plan } from '../plans/plan.ts';`,
      'domain/plans/plan.ts': `export { upgrade } from '../billing/upgrade.ts';`,
      'domain/billing/upgrade.ts': `import {\n  type Sent,\n} from '../mail/sent.ts';`,
    });
    expect(circlesIn(roomEdges(found))).toEqual(['mail → plans → billing → mail']);
  });

  test('a circle of files, also by a dynamic import', () => {
    const found = planted({
      'api/a.ts': `import './b.ts';`,
      'api/b.ts': `const a = await import('./a.ts');`,
    });
    expect(circlesIn(found.map(({ file, target }) => [file, target]))).toEqual([
      'api/a.ts → api/b.ts → api/a.ts',
    ]);
  });

  test('foreign keys between entities are no circle, their services are', () => {
    const entities = planted({
      'domain/users/user.entity.ts': `import { TeamEntity } from '../teams/team.entity.ts';`,
      'domain/teams/team.entity.ts': `import { UserEntity } from '../users/user.entity.ts';`,
    });
    const services = planted({
      'domain/users/user.service.ts': `import { TeamEntity } from '../teams/team.entity.ts';`,
      'domain/teams/team.service.ts': `import { UserEntity } from '../users/user.entity.ts';`,
    });
    expect(circlesIn(roomEdges(entities))).toEqual([]);
    expect(circlesIn(roomEdges([...entities, ...services]))).toEqual(['users → teams → users']);
  });

  test('a crowded folder, not one whose subfolders are full', () => {
    const flat = ['a', 'b', 'c'].map((name) => `domain/mail/${name}.ts`);
    expect(crowdedFolders([...flat, 'domain/mail/sub/d.ts'], 2)).toEqual(['domain/mail: 3']);
    expect(crowdedFolders([...flat, 'domain/mail/sub/d.ts'], 3)).toEqual([]);
  });
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
