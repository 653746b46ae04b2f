import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * Lets the Inspector and the official Python client use the tools of the service that `npm start` runs. Both stay out of
 * package.json: they have a folder of their own.
 */
const FOLDER = join(import.meta.dirname, '../../.cache/check-mcp');
const FIRST_RUN = join(import.meta.dirname, '../../.data/first-run.json');
const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0';
const PYTHON_CLIENT = 'mcp==2.3.0';

async function run(program: string, args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const options = { cwd: FOLDER, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await promisify(execFile)(program, args, options);
  return stdout;
}

async function install(): Promise<void> {
  await mkdir(FOLDER, { recursive: true });
  const wanted = `${INSPECTOR} ${PYTHON_CLIENT}`;
  const installed = join(FOLDER, 'installed.txt');
  if (existsSync(installed) && (await readFile(installed, 'utf8')) === wanted) return;
  await writeFile(join(FOLDER, 'package.json'), JSON.stringify({ private: true }));
  await run('npm', ['install', '--no-audit', '--no-fund', '--save-exact', '--ignore-scripts', INSPECTOR]);
  await run('python3', ['-m', 'venv', 'venv']);
  await run(join(FOLDER, 'venv/bin/pip'), [
    'install',
    '--quiet',
    '--disable-pip-version-check',
    PYTHON_CLIENT,
  ]);
  await writeFile(installed, wanted);
}

async function inspect(url: string, key: string): Promise<void> {
  const inspector = join(FOLDER, 'node_modules/.bin/mcp-inspector');
  const common = [inspector, '--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${key}`];
  // It exits with 6 if a schema is not portable.
  const list = await run(process.execPath, [...common, '--method', 'tools/list', '--strict']);
  const { tools } = JSON.parse(list) as { tools: { name: string }[] };
  const call = [...common, '--method', 'tools/call', '--tool-name'];
  const answer = await run(process.execPath, [...call, 'whoami']);
  if (!answer.includes('"kind": "api_key"')) throw new Error(`whoami answered ${answer}`);
  console.log(`inspector: ${tools.length} tools, whoami answers`);
}

async function main(): Promise<void> {
  if (!existsSync(FIRST_RUN)) throw new Error('Run npm start first, in another terminal.');
  const { base_url: baseUrl = '', api_key: apiKey } = JSON.parse(await readFile(FIRST_RUN, 'utf8')) as Record<
    string,
    string
  >;
  const url = `${new URL(baseUrl).origin}/mcp`;
  await install();
  await inspect(url, apiKey ?? '');
  const recipe = join(import.meta.dirname, 'recipe.py');
  const env = { AGENT_EMAIL_API_KEY: apiKey };
  process.stdout.write(await run(join(FOLDER, 'venv/bin/python'), [recipe, url], env));
}

await main();
