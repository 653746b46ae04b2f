import { execFileSync, spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import { findPython, MYPY_CACHE, PYTHON_CLIENT, preparePython } from '../../dev/python-environment.ts';
import { testSamples } from '../support/recipe-samples.ts';

jest.setTimeout(120_000);

const interpreter = findPython();
// Skipped tests are counted, and .ci/run reports them.
const describeIfInstalled = interpreter === null ? describe.skip : describe;
if (interpreter === null)
  console.warn('Python 3.10 or newer with venv is not installed: the recipes in Python are not tested');

const SUPPORT = resolve('test/support');
const CLIENT = join(PYTHON_CLIENT, 'src');

describeIfInstalled('the recipes in Python', () => {
  let python = '';
  beforeAll(async () => {
    python = await preparePython(interpreter ?? '');
    // The first run installs the packages.
  }, 300_000);

  const { program } = testSamples({
    language: 'python',
    file: 'recipes.py',
    prelude: 'from recipe_program import meanwhile, print, recipe_ends\n',
    meanwhile: (mark) => `meanwhile(${JSON.stringify(mark)})`,
    ends: (title) => `recipe_ends(${JSON.stringify(title)})`,
    spawn: (path, { cwd, env }) =>
      spawn(python, [path], {
        cwd,
        env: { ...env, PYTHONPATH: `${CLIENT}:${SUPPORT}`, PYTHONDONTWRITEBYTECODE: '1' },
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      }),
  });

  test('the types of the samples are right', () => {
    const args = ['-m', 'mypy', '--strict', '--cache-dir', MYPY_CACHE, program];
    const env = { ...process.env, MYPYPATH: `${CLIENT}:${SUPPORT}` };
    expect(execFileSync(python, args, { encoding: 'utf8', env })).toContain('Success');
  });
});
