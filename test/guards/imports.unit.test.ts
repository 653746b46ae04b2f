import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import {
  findCycles,
  findInterfaces,
  findRoomImports,
  type Import,
  listSourceFiles,
  parseImports,
  roomOf,
} from './import-graph.ts';

const FOLDERS = ['api', 'web', 'domain', 'platform', 'workflows', 'activities', 'workers', 'migrations'];
/** What a reader of other rooms has to know of one. */
const MAX_FILES_IN_INTERFACE = 30;

const files = listSourceFiles(FOLDERS);
const imports = files.flatMap((file) => parseImports(file));

const folderOf = (path: string) => path.split('/')[0] ?? '';
const isInRepository = ({ target }: Import) => FOLDERS.includes(folderOf(target)) && target.endsWith('.ts');
const isContract = (path: string) => path.endsWith('.contract.ts');
const format = ({ file, target }: Import) => `${file} → ${target}`;

test('the guard reads the whole repository', () => {
  expect(files.length).toBeGreaterThan(300);
  expect(imports.length).toBeGreaterThan(1_500);
});

describe('what a folder may import', () => {
  const ALLOWED_FOLDERS: Record<string, string[]> = {
    platform: ['platform'],
    domain: ['domain', 'platform'],
    activities: ['activities', 'domain', 'platform'],
    api: ['api', 'domain', 'platform'],
    workflows: ['workflows'],
    migrations: ['platform'],
    web: ['web', 'api', 'domain', 'platform'],
  };
  /** The API composes the pages in one place. */
  const COMPOSITION = 'api/v1.ts → web/page-routes.ts';

  test.each(Object.entries(ALLOWED_FOLDERS))('%s imports %j and contracts', (folder, allowed) => {
    const violations = imports
      .filter((entry) => folderOf(entry.file) === folder && isInRepository(entry))
      .filter(({ target }) => !allowed.includes(folderOf(target)))
      .filter(({ target }) => folder === 'platform' || !isContract(target))
      .filter((entry) => format(entry) !== COMPOSITION)
      .filter(
        ({ target, typeOnly }) => !(folder === 'workflows' && typeOnly && folderOf(target) === 'activities'),
      );
    expect(violations.map(format)).toEqual([]);
  });

  test('pages call use-cases, not routes of the API', () => {
    const violations = imports.filter(
      ({ file, target }) => file.startsWith('web/') && /^api\/.*(?:\.routes|\/v1|\/app)\.ts$/.test(target),
    );
    expect(violations.map(format)).toEqual([]);
  });

  test('workflows import the Temporal SDK and no Node modules', () => {
    const foreign = imports.filter((entry) => folderOf(entry.file) === 'workflows' && !isInRepository(entry));
    expect(
      foreign.filter(({ target }) => !/^@temporalio\/(workflow|common)$/.test(target)).map(format),
    ).toEqual([]);
  });

  test('contracts import contracts and types', () => {
    const violations = imports.filter(
      ({ file, target, typeOnly }) => isContract(file) && !typeOnly && !isContract(target),
    );
    expect(violations.map(format)).toEqual([]);
  });

  test('routes and schemas import neither MikroORM nor the database', () => {
    const routes = imports.filter(({ file, typeOnly }) => /\.(routes|schemas)\.ts$/.test(file) && !typeOnly);
    const violations = routes.filter(
      ({ target }) => target.startsWith('@mikro-orm') || target.startsWith('platform/database'),
    );
    expect(routes.length).toBeGreaterThan(30);
    expect(violations.map(format)).toEqual([]);
  });
});

describe('rooms', () => {
  test('rooms have no import cycle, type imports included', () => {
    expect(new Set(findRoomImports(imports).map(([from]) => from)).size).toBeGreaterThan(15);
    expect(findCycles(findRoomImports(imports))).toEqual([]);
  });

  test('rooms do not import files directly in domain/', () => {
    const violations = imports.filter(
      ({ file, target }) =>
        roomOf(file) !== undefined && target.startsWith('domain/') && roomOf(target) === undefined,
    );
    expect(violations.map(format)).toEqual([]);
  });

  test('files have no import cycle, type imports included', () => {
    // Entities may refer to each other, because a reference is a function that runs later.
    const repositoryImports = imports
      .filter(isInRepository)
      .filter(({ file, target }) => !(file.endsWith('.entity.ts') && target.endsWith('.entity.ts')));
    expect(findCycles(repositoryImports.map(({ file, target }) => [file, target]))).toEqual([]);
  });

  test(`no room has more than ${MAX_FILES_IN_INTERFACE} files that others import`, () => {
    const wide = [...findInterfaces(imports)].filter(
      ([, exported]) => exported.size > MAX_FILES_IN_INTERFACE,
    );
    expect(wide.map(([room, exported]) => `${room}: ${exported.size}`)).toEqual([]);
  });
});

describe('the guard', () => {
  const parseSources = (sources: Record<string, string>) =>
    Object.entries(sources).flatMap(([file, source]) => parseImports(file, source));

  test('finds a cycle of rooms, even if only types are imported', () => {
    const found = parseSources({
      'domain/mail/send.ts': `import type { Plan } from '../plans/plan.ts';`,
      'domain/plans/plan.ts': `export { upgrade } from '../billing/upgrade.ts';`,
      'domain/billing/upgrade.ts': `import {\n  type Sent,\n} from '../mail/sent.ts';`,
    });
    expect(findCycles(findRoomImports(found))).toEqual(['mail → plans → billing → mail']);
  });

  test('finds a cycle of files with a dynamic import', () => {
    const found = parseSources({
      'api/a.ts': `import './b.ts';`,
      'api/b.ts': `const a = await import('./a.ts');`,
    });
    expect(findCycles(found.map(({ file, target }) => [file, target]))).toEqual([
      'api/a.ts → api/b.ts → api/a.ts',
    ]);
  });

  test('allows foreign keys between entities, but no cycle of their services', () => {
    const entities = parseSources({
      'domain/users/user.entity.ts': `import { TeamEntity } from '../teams/team.entity.ts';`,
      'domain/teams/team.entity.ts': `import { UserEntity } from '../users/user.entity.ts';`,
    });
    const services = parseSources({
      'domain/users/user.service.ts': `import { TeamEntity } from '../teams/team.entity.ts';`,
      'domain/teams/team.service.ts': `import { UserEntity } from '../users/user.entity.ts';`,
    });
    expect(findCycles(findRoomImports(entities))).toEqual([]);
    expect(findCycles(findRoomImports([...entities, ...services]))).toEqual(['users → teams → users']);
  });

  test('finds what a room exports', () => {
    const found = parseSources({
      'api/a.ts': `import { send } from '../domain/mail/send.ts';`,
      'domain/plans/plan.ts': `import type { Sent } from '../mail/send.ts';\nimport { read } from '../mail/read.ts';`,
      'domain/mail/send.ts': `import { build } from './build.ts';`,
      'domain/plans/plan.entity.ts': `import { MailEntity } from '../mail/mail.entity.ts';`,
    });
    expect(findInterfaces(found)).toEqual(
      new Map([['mail', new Set(['domain/mail/send.ts', 'domain/mail/read.ts'])]]),
    );
  });
});

test('only platform/config.ts reads the environment', () => {
  const readers = files.filter((file) => /process\.env\b/.test(readFileSync(file, 'utf8')));
  expect(readers).toEqual(['platform/config.ts']);
});

test('no file name is vague, such as utils or helpers', () => {
  const vague = files.filter((file) => /(^|[/-])(utils?|helpers?|common|manager|handler)[-./]/.test(file));
  expect(vague).toEqual([]);
  // The ORM names migrations with an underscore.
  for (const file of files)
    expect(file.replace(/^migrations\/Migration\d+_\w+/, 'migration')).toMatch(/^[a-zA-Z0-9/.-]+\.ts$/);
});
