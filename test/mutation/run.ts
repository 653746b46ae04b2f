import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { AREAS, type Area } from './areas.ts';

/** The least share of mutants, in percent, that the tests of each area must find. */
const MIN_SCORE = 85;

/** `npm run test:mutation [-- <area>…] [--mutate <file>] [--concurrency <processes>]` */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { concurrency: { type: 'string', default: '2' }, mutate: { type: 'string', multiple: true } },
});
const areas = (positionals.length > 0 ? positionals : Object.keys(AREAS)).map((name) => {
  const area = AREAS[name];
  if (!area) throw new Error(`No area ${name}. Areas: ${Object.keys(AREAS).join(', ')}`);
  for (const file of [...area.files, ...area.tests])
    if (!existsSync(file)) throw new Error(`The area ${name} names ${file}, which does not exist.`);
  return { name, area };
});

const findMutants = ({ files, tests }: Area) =>
  new Stryker({
    mutate: values.mutate ?? [...files],
    testRunner: 'jest',
    plugins: ['@stryker-mutator/jest-runner', './test/mutation/ignore-messages.ts'],
    ignorers: ['messages'],
    testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
    jest: {
      projectType: 'custom',
      configFile: 'test/mutation/jest.config.mjs',
      config: { testMatch: tests.map((test) => `<rootDir>/${test}`) },
      enableFindRelatedTests: true,
    },
    coverageAnalysis: 'perTest',
    // TypeScript 7 has no API with which Stryker could rewrite tsconfig.json, which no test reads. This file does not exist.
    tsconfigFile: 'test/mutation/none.json',
    ignorePatterns: ['.data', '.cache', 'charts', 'dist', 'docs', '.git'],
    tempDirName: '/tmp/stryker',
    reporters: ['clear-text'],
    clearTextReporter: { allowColor: false, reportTests: false, reportScoreTable: false },
    concurrency: Number(values.concurrency),
    // A slow machine must not look like an endless loop.
    timeoutMS: 20_000,
    // Modules of earlier mutants stay in memory.
    maxTestRunnerReuse: 100,
    allowEmpty: false,
  }).runMutationTest();

const isFound = (status: string) => status === 'Killed' || status === 'Timeout';
for (const { name, area } of areas) {
  const statuses = (await findMutants(area)).map(({ status }) => status);
  const count = (isCounted: (status: string) => boolean) => statuses.filter(isCounted).length;
  const found = count(isFound);
  const all = found + count((status) => status === 'Survived' || status === 'NoCoverage');
  const score = (100 * found) / all;
  const timeouts = count((status) => status === 'Timeout');
  const errors = count((status) => status.endsWith('Error'));
  console.log(
    `${name}: ${score.toFixed(1)} % of ${all} mutants found, ${timeouts} of them by timeout; ${errors} not run`,
  );
  if (score >= MIN_SCORE) continue;
  console.error(`${name} is below ${MIN_SCORE} %.`);
  process.exitCode = 1;
}
