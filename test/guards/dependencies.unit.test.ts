import { globSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const packageJson = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
  'dependencies' | 'devDependencies',
  Record<string, string>
>;
const PRODUCTION = '{activities,api,domain,migrations,platform,web,workers,workflows}/**/*.ts';
const DEVELOPMENT = ['{bench,dev,test}/**/*.{ts,mts}', 'jest.config.ts', 'biome.json'];

/** Why a package is installed that no file names. */
const UNNAMED: Record<string, string> = {
  node: 'runs the npm scripts',
  protobufjs: 'one copy for all Temporal packages (docs/decisions/2026-11-21-one-protobufjs.md)',
  typescript: 'tsc, in the script check',
};

const read = (patterns: string | string[]) =>
  globSync(patterns)
    .filter((file) => !file.endsWith('dependencies.unit.test.ts'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');

/** Packages that no import, path or setting in `text` names. Types belong to their package. */
function findUnused(packages: object, text: string): string[] {
  return Object.keys(packages).filter((name) => {
    const subject = name.replace(/^@types\//, '');
    return !(name in UNNAMED) && !new RegExp(`['"/]${subject}['"/]`).test(text);
  });
}

const production = read(PRODUCTION);
const development = read(DEVELOPMENT);

test('production code uses every dependency', () => {
  expect(findUnused(packageJson.dependencies, production)).toEqual([]);
});

test('tests or tools use every development dependency', () => {
  expect(findUnused(packageJson.devDependencies, `${production}\n${development}`)).toEqual([]);
});

test('finds a package that only other packages mention', () => {
  const packages = { fastify: '1', 'not-used': '1', '@scope/not-used': '1', '@types/not-used': '1' };
  expect(findUnused(packages, production)).toEqual(['not-used', '@scope/not-used', '@types/not-used']);
});
