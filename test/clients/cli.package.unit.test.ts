import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, jest, test } from '@jest/globals';

jest.setTimeout(60_000);

const PACKAGE = resolve('clients/cli');
const folder = mkdtempSync(join(tmpdir(), 'agent-email-cli-package-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (program: string, parameters: string[], cwd: string) =>
  promisify(execFile)(program, parameters, { cwd, env: { PATH: process.env.PATH, HOME: folder } });

test('the packed program installs into an empty folder without other packages, runs, and completes in bash', async () => {
  const [packed, project] = [join(folder, 'packed'), join(folder, 'project')];
  for (const each of [packed, project]) mkdirSync(each);
  for (const file of ['package.json', 'README.md', 'LICENSE'])
    cpSync(join(PACKAGE, file), join(packed, file));
  await run(process.execPath, [join(PACKAGE, 'build.ts'), join(packed, 'dist')], PACKAGE);
  await run('npm', ['pack', '--ignore-scripts', '--loglevel=error'], packed);
  writeFileSync(join(project, 'package.json'), '{ "private": true }');
  const archive = join(packed, 'agent-email-cli-0.1.0.tgz');
  await run('npm', ['install', '--offline', '--loglevel=error', archive], project);
  const installed = readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'));
  expect(installed).toEqual(['agent-email-cli']);

  // As the shell finds it, by its first line.
  const program = join(project, 'node_modules/.bin/agent-email');
  expect((await run(program, ['--version'], project)).stdout).toBe('0.1.0\n');
  await expect(run(program, ['whoami'], project)).rejects.toMatchObject({ code: 3 });
  const { stdout } = await run(
    'bash',
    [
      '-c',
      `source <('${program}' completion bash)
       complete_words() { COMP_WORDS=(agent-email "$@"); COMP_CWORD=$#; _agent_email; echo "\${COMPREPLY[@]}"; }
       complete_words webhooks l; complete_words send --to x --te; complete_words web`,
    ],
    project,
  );
  expect(stdout).toBe('listen\n--text --text-file\nwebhooks\n');
});
