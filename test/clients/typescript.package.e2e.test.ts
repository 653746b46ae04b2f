import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { sharedService } from '../support/service.ts';

jest.setTimeout(60_000);

const PACKAGE = resolve('clients/typescript');
const service = sharedService();
const folder = mkdtempSync(join(tmpdir(), 'agent-email-package-'));
const project = join(folder, 'project');
const [, EXAMPLE = ''] = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(PACKAGE, 'README.md'), 'utf8')) ?? [];

async function run(program: string, args: string[], cwd: string): Promise<string> {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    AGENT_EMAIL_API_KEY: service.api_key,
    AGENT_EMAIL_BASE_URL: service.base_url,
  };
  const { stdout } = await promisify(execFile)(program, args, { cwd, env }).catch(
    (error: { stdout: string; stderr: string }) => {
      throw new Error(`${program} ${args.join(' ')} failed:\n${error.stdout}${error.stderr}`);
    },
  );
  return stdout;
}

beforeAll(async () => {
  const packed = join(folder, 'packed');
  mkdirSync(packed);
  mkdirSync(project);
  for (const file of ['package.json', 'README.md', 'LICENSE'])
    cpSync(join(PACKAGE, file), join(packed, file));
  await run(process.execPath, [join(PACKAGE, 'build.ts'), join(packed, 'dist')], PACKAGE);
  await run('npm', ['pack', '--ignore-scripts', '--loglevel=error'], packed);
  writeFileSync(join(project, 'package.json'), '{ "private": true }');
  await run(
    'npm',
    ['install', '--offline', '--loglevel=error', join(packed, 'agent-email-0.1.0.tgz')],
    project,
  );
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the package has its code in both formats, with declarations, and nothing else', () => {
  const installed = join(project, 'node_modules/agent-email');
  expect(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
    'agent-email',
  ]);
  expect(readdirSync(installed).sort()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json']);
  const files = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' });
  expect(
    files.filter((file) => /\.[a-z]+$/.test(file) && !/(\.js|\.d\.ts|package\.json)$/.test(file)),
  ).toEqual([]);
  expect(files).toEqual(
    expect.arrayContaining(['esm/index.js', 'esm/index.d.ts', 'cjs/index.js', 'cjs/index.d.ts']),
  );
});

/** The types that a project has, and the compiler, as `npm install --save-dev typescript @types/node` would add them. */
function addTypeScript(): void {
  for (const name of ['@types/node', 'undici-types']) {
    mkdirSync(join(project, 'node_modules/@types'), { recursive: true });
    symlinkSync(resolve('node_modules', name), join(project, 'node_modules', name));
  }
}

test("the README's example runs as an ES module and as CommonJS, and its types are right in both", async () => {
  const body = EXAMPLE.replace(/^import .*$/m, '');
  writeFileSync(join(project, 'module.mts'), EXAMPLE);
  writeFileSync(join(project, 'module.mjs'), EXAMPLE);
  writeFileSync(
    join(project, 'common.cjs'),
    `const { AgentEmail } = require('agent-email');\n(async () => {${body}})();`,
  );
  writeFileSync(
    join(project, 'common.cts'),
    `import { AgentEmail } from 'agent-email';\nexport const run = async () => {${body}};`,
  );
  addTypeScript();
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: 'nodenext',
    target: 'es2022',
    types: ['node'],
  };
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['*.mts', '*.cts'] }),
  );
  const outputs = await Promise.all([
    run(process.execPath, ['module.mjs'], project),
    run(process.execPath, ['common.cjs'], project),
    run(process.execPath, [resolve('node_modules/typescript/bin/tsc'), '-p', '.'], project),
  ]);
  const delivered = /^\S+@\S+ wrote to ada@people\.example: delivered\n$/;
  expect(outputs).toEqual([expect.stringMatching(delivered), expect.stringMatching(delivered), '']);
});

test('a wrong name, field or value is a type error', async () => {
  writeFileSync(
    join(project, 'wrong.mts'),
    `import { AgentEmail } from 'agent-email';
const client = new AgentEmail();
client.messages.sned('inb_1', { to: [] });
client.messages.send('inb_1', { to: [], text: 'Hello' });
client.messages.list('inb_1', { direction: 'sideways' });
const message = await client.messages.get('msg_1', { view: 'agent' });
message.text_body;
const written = await new AgentEmail({ receipts: true }).messages.send('inb_1', { to: [] });
written.subject;
// These are right.
const status: string = message.status;
if (written.object === 'receipt') written.id;
const { text } = message;
export { status, text };
`,
  );
  const failed = await run(
    process.execPath,
    [resolve('node_modules/typescript/bin/tsc'), '-p', '.'],
    project,
  ).then(
    () => '',
    (error: Error) => error.message,
  );
  rmSync(join(project, 'wrong.mts'));
  expect([...failed.matchAll(/wrong\.mts\((\d+),/g)].map(([, line]) => Number(line))).toEqual([
    3, 4, 5, 7, 9,
  ]);
});
