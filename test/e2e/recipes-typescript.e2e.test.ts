import { execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, jest, test } from '@jest/globals';
import { testSamples } from '../support/recipe-samples.ts';

jest.setTimeout(120_000);

const { program } = testSamples({
  language: 'ts',
  file: 'recipes.ts',
  prelude: `declare function meanwhile(mark: string): Promise<void>;
declare function recipeEnds(title: string): Promise<void>;
`,
  meanwhile: (mark) => `await meanwhile(${JSON.stringify(mark)});`,
  ends: (title) => `await recipeEnds(${JSON.stringify(title)});`,
  spawn: (path, options) =>
    spawn(
      process.execPath,
      ['--conditions=agent-email-source', '--import', resolve('test/support/recipe-program.mts'), path],
      { ...options, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] },
    ),
});

test('the types of the samples are right', async () => {
  const path = join(dirname(program), 'tsconfig.json');
  writeFileSync(path, JSON.stringify({ extends: resolve('tsconfig.json'), include: [program] }));
  const tsc = resolve('node_modules/typescript/bin/tsc');
  expect(execFileSync(process.execPath, [tsc, '-p', path], { encoding: 'utf8' })).toBe('');
});
