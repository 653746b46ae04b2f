import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import { SAMPLED_AREAS } from './areas.ts';
import { strykerPlugins } from './ignore-messages.ts';

/**
 * `node test/mutation/sample.ts [--count 100] [--skip 0] [--seed 24]`: mutants of use-cases, chosen at random but the same for
 * the same seed and code, each against the tests that reach it. Prints those that no test finds, to be read by a person:
 * what needs PostgreSQL has too many mutants, and too slow tests, for all of them.
 */
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '100' },
    skip: { type: 'string', default: '0' },
    seed: { type: 'string', default: '24' },
  },
});
/** A mutant whose tests take longer is found: it waits or loops. */
const TIMEOUT_MS = 240_000;

const root = resolve(import.meta.dirname, '../..');
const sandbox = mkdtempSync(join(tmpdir(), 'mutants-'));
const coverageFile = join(sandbox, 'coverage.jsonl');
const LEFT_OUT = ['node_modules', '.git', '.data', '.cache', 'dist'];
cpSync(root, sandbox, {
  recursive: true,
  filter: (path) => !LEFT_OUT.includes(relative(root, path)),
});
symlinkSync(join(root, 'node_modules'), join(sandbox, 'node_modules'));
/** Jest and the servers of the tests have their temporary files here. The database runs as another user. */
const temporary = join(sandbox, 'tmp');
mkdirSync(temporary);
chmodSync(sandbox, 0o755);
chmodSync(temporary, 0o755);
let jest: ChildProcess | undefined;
/** Ends the Jest that runs, and its database, which is in a process group of its own. */
function stop(): void {
  if (jest?.exitCode !== null || jest.pid === undefined) return;
  process.kill(-jest.pid, 'SIGKILL');
  for (const file of globSync(join(temporary, '*/postgres/postmaster.pid')))
    process.kill(Number.parseInt(readFileSync(file, 'utf8'), 10), 'SIGINT');
}
process.once('exit', () => {
  stop();
  rmSync(sandbox, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const silent = () => undefined;
const logger = {
  ...{ trace: silent, debug: silent, info: silent, warn: silent, error: silent, fatal: silent },
  ...{ isTraceEnabled: () => false, isDebugEnabled: () => false, isInfoEnabled: () => false },
  ...{ isWarnEnabled: () => false, isErrorEnabled: () => false, isFatalEnabled: () => false },
};
const names = SAMPLED_AREAS.flatMap(({ files }) => files);
const { files, mutants } = await new Instrumenter(logger).instrument(
  names.map((name) => ({ name, mutate: true, content: readFileSync(join(root, name), 'utf8') })),
  { excludedMutations: [], ignorers: strykerPlugins.map(({ value }) => value), plugins: null },
);
for (const { name, content } of files) writeFileSync(join(sandbox, name), content);

type Mutant = (typeof mutants)[number];
const rankOf = ({ fileName, location, replacement }: Mutant) =>
  createHash('sha256')
    .update(JSON.stringify([values.seed, fileName, location, replacement]))
    .digest('hex');
const skip = Number(values.skip);
const sample = mutants
  .filter(({ status }) => status !== 'Ignored')
  .map((mutant) => ({ mutant, rank: rankOf(mutant) }))
  .sort((one, other) => (one.rank < other.rank ? -1 : 1))
  .slice(skip, skip + Number(values.count))
  .map(({ mutant }) => mutant);

/** Runs Jest in the sandbox. Resolves with whether all tests passed; with null if they took longer than `timeoutMs`. */
function runTests(
  options: readonly string[],
  variables: Record<string, string>,
  timeoutMs?: number,
): Promise<boolean | null> {
  const fixed = ['test/support/run-jest.ts', '--selectProjects', 'unit', 'api', '--silent', '--maxWorkers=2'];
  const child = spawn(process.execPath, [...fixed, ...options], {
    cwd: sandbox,
    env: { ...process.env, TMPDIR: temporary, ...variables },
    stdio: 'ignore',
    detached: true,
  });
  jest = child;
  return new Promise((done) => {
    let isLate = false;
    const timer =
      timeoutMs &&
      setTimeout(() => {
        isLate = true;
        stop();
      }, timeoutMs);
    child.once('exit', (code) => {
      clearTimeout(timer);
      done(isLate ? null : code === 0);
    });
  });
}

const areasOf = (mutant: Mutant) => SAMPLED_AREAS.filter((area) => area.files.includes(mutant.fileName));
const paths = [...new Set(sample.flatMap(areasOf).flatMap(({ tests }) => tests))];
for (const path of [...names, ...paths])
  if (!existsSync(join(root, path))) throw new Error(`${path} does not exist`);
console.log(`${sample.length} of ${mutants.length} mutants; finding the tests that reach them`);
// A worker for each file, since it loads modules once.
const passed = await runTests(
  [
    '--workerIdleMemoryLimit=1',
    ...['--testEnvironment', join(sandbox, 'test/mutation/coverage-environment.mts'), '--', ...paths],
  ],
  { MUTANT_COVERAGE_FILE: coverageFile },
);
if (!passed) throw new Error('The tests fail without a mutant');
const reached = readFileSync(coverageFile, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as { file: string; reached: string[] });

/** Whether tests pass with a mutant; null if they took too long. Those of its room run first, as they find the most. */
async function passWith({ id, fileName }: Mutant, tests: readonly string[]): Promise<boolean | null> {
  const isOwn = (test: string) => test.startsWith(`${sandbox}/test/${fileName.split('/')[1]}/`);
  for (const files of [tests.filter(isOwn), tests.filter((test) => !isOwn(test))]) {
    if (files.length === 0) continue;
    const variables = { __STRYKER_ACTIVE_MUTANT__: id };
    const passed = await runTests(['--bail', '--runTestsByPath', ...files], variables, TIMEOUT_MS);
    if (!passed) return passed;
  }
  return true;
}

const counts = { found: 0, late: 0, survived: 0, unreached: 0 };
for (const mutant of sample) {
  const tests = reached.filter((test) => test.reached.includes(mutant.id)).map(({ file }) => file);
  const passes = await passWith(mutant, tests);
  const status = tests.length === 0 ? 'unreached' : passes === null ? 'late' : passes ? 'survived' : 'found';
  counts[status] += 1;
  const { line, column } = mutant.location.start;
  const place = `${mutant.fileName}:${line + 1}:${column + 1}`;
  console.log(`${status}: ${mutant.mutatorName} ${place} (${tests.length} test files)`);
  if (status !== 'found') console.log(`  becomes: ${mutant.replacement}`);
}
console.log(JSON.stringify(counts));
