import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { ConfigSchema } from '../../platform/config.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGES = [
  'README.md',
  'AGENTS.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];
const DECISIONS = 'docs/decisions';
const CODE = [
  'activities',
  'api',
  'bench',
  'charts',
  'dev',
  'domain',
  'migrations',
  'platform',
  'test',
  'workers',
]
  .concat('workflows')
  .flatMap((folder) => listFiles(folder, /\.(ts|sql|ya?ml|tpl|txt)$/))
  .concat(
    'docker-compose.yml',
    'Dockerfile',
    '.env.example',
    ...listFiles('docs', /\.(ts|py|go|sh|yml|json)$/),
  );
/** Names in capitals that are neither settings of a process nor constants of the code. */
const OTHER_NAMES = [
  'AGENT_EMAIL_API_KEY',
  'AGENT_EMAIL_BASE_URL',
  'BENCH_MESSAGES',
  'BENCH_PROCESSES',
  'NODE_EXTRA_CA_CERTS',
  'OWNER_URL',
  'API_URL',
  'PROCESSING_FAILED',
];

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const withoutCode = (text: string) => text.replace(/^ *```[\s\S]*?^ *```/gm, '');

/** What `pattern` captures on each page, as "page: text", without what `isRight` accepts. */
function findWrong(
  pattern: RegExp,
  isRight: (found: string, page: string) => boolean,
  pages = PAGES,
): { wrong: string[]; count: number } {
  const found = pages.flatMap((page) =>
    [...read(page).matchAll(pattern)].map(([, text = '']) => ({ page, text })),
  );
  const wrong = found.filter(({ page, text }) => !isRight(text, page));
  return { wrong: wrong.map(({ page, text }) => `${page}: ${text}`), count: found.length };
}

test('links lead to pages and headings that exist', () => {
  const { wrong, count } = findWrong(/\]\((?!https?:|mailto:)([^)\s]+)\)/g, (target, page) => {
    const [file = '', anchor] = target.split('#');
    return exists(file === '' ? page : join(dirname(page), file), anchor);
  });
  expect(count).toBeGreaterThan(100);
  expect(wrong).toEqual([]);
});

test('pages and headings that code, settings and pages name by their path exist', () => {
  const { wrong, count } = findWrong(
    /(?<![\w:/.-]|agent-email\/)((?:docs\/[\w./-]+\.\w+|README\.md|CONTRIBUTING\.md|CHANGELOG\.md)(?:#[\w-]+)?)/g,
    (target) => {
      const [file = '', anchor] = target.split('#');
      return exists(file, anchor);
    },
    [...PAGES, ...CODE],
  );
  expect(count).toBeGreaterThan(60);
  expect(wrong).toEqual([]);
});

test('every decision has a record with a date and a title, and stands in the index', () => {
  const records = readdirSync(join(ROOT, DECISIONS)).filter((name) => name !== 'README.md');
  const index = read(join(DECISIONS, 'README.md'));
  expect(records.length).toBeGreaterThan(50);
  expect(records.filter((name) => !/^\d{4}-\d{2}-\d{2}-[a-z0-9-]+\.md$/.test(name))).toEqual([]);
  expect(records.filter((name) => !/^# \S.*\n\n\S/.test(read(join(DECISIONS, name))))).toEqual([]);
  expect(records.filter((name) => !index.includes(`](${name})`))).toEqual([]);
});

test('the index of decisions names rooms that exist', () => {
  const rooms = [...read(join(DECISIONS, 'README.md')).matchAll(/^### `([\w-]+)`$/gm)].map(
    ([, room = '']) => room,
  );
  expect(rooms.length).toBeGreaterThan(20);
  expect(rooms.filter((room) => !existsSync(join(ROOT, 'domain', room)))).toEqual([]);
});

test('the README fits a reader who has five minutes: at most 1,200 words', () => {
  const words = read('README.md').split(/\s+/).filter(Boolean).length;
  expect(words).toBeGreaterThan(500);
  expect(words).toBeLessThanOrEqual(1_200);
});

test('commands exist', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const { wrong, count } = findWrong(/npm run ([\w:-]+)/g, (name) => name in scripts);
  expect(count).toBeGreaterThan(30);
  expect(wrong).toEqual([]);
});

const [, CAPACITIES = ''] = read('docs/security.md').split('## Shared capacity');

test('settings exist', () => {
  const constants = CODE.flatMap((file) => [...read(file).matchAll(/\bconst ([A-Z][A-Z0-9_]+)\b/g)]);
  const known = new Set([
    ...Object.keys(ConfigSchema.properties),
    ...constants.map(([, name = '']) => name),
    ...OTHER_NAMES,
  ]);
  // Decisions also name what was decided against.
  const pages = PAGES.filter((page) => !page.startsWith(DECISIONS));
  const { wrong, count } = findWrong(
    /`([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:=[^`]*)?`/g,
    // The table of shared capacity also names constants, which a guard of its own compares with the code.
    (name, page) => known.has(name) || (page === 'docs/security.md' && CAPACITIES.includes(`\`${name}\``)),
    pages,
  );
  expect(count).toBeGreaterThan(100);
  expect(wrong).toEqual([]);
});

test('files of the repository exist', () => {
  const folders = 'api|domain|workflows|activities|workers|platform|migrations|test|dev|bench|docs|charts';
  const { wrong, count } = findWrong(
    new RegExp(`\`((?:${folders})/[\\w./-]+)\``, 'g'),
    // The guide to a new resource has an example.
    (path) => existsSync(join(ROOT, path)) || /signature/.test(path),
  );
  expect(count).toBeGreaterThan(100);
  expect(wrong).toEqual([]);
});

test('metrics exist', () => {
  const code = ['api', 'domain', 'platform', 'workers'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => read(join(folder, name))),
  );
  const known = new Set(
    code.flatMap((text) => [...text.matchAll(/'(agent_email_\w+)'/g)].map(([, name]) => name)),
  );
  const pages = ['docs/operations.md', 'docs/monitoring.md', 'docs/kubernetes.md', 'docs/sizing.md'];
  const { wrong, count } = findWrong(/`(agent_email_\w+)(?:\{[^`]*\})?`/g, (name) => known.has(name), pages);
  expect(count).toBeGreaterThan(15);
  expect(wrong).toEqual([]);
});

test('each docstring stands above what it describes, not above another docstring', () => {
  const doubled = CODE.filter((file) => file.endsWith('.ts')).flatMap((file) =>
    [...read(file).matchAll(/\*\/\n[ \t]*(\/\*\*.*)/g)].map(([, second]) => `${file}: ${second}`),
  );
  expect(doubled).toEqual([]);
});

function listFiles(folder: string, names: RegExp): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => names.test(name))
    .map((name) => join(folder, name));
}

function exists(path: string, anchor: string | undefined): boolean {
  if (!existsSync(join(ROOT, path))) return false;
  return anchor === undefined || !path.endsWith('.md') || anchorsOf(path).has(anchor);
}

/** As GitHub makes them from headings. */
function anchorsOf(page: string): Set<string> {
  const headings = [...withoutCode(read(page)).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}
