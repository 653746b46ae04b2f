import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readOpenApiDocuments } from './documents.ts';

/**
 * Generates clients from both OpenAPI documents with generators that people use, and type-checks what they made. A warning is a
 * failure. The generators stay out of package.json: they have a folder of their own, with the TypeScript that they support.
 */
const FOLDER = join(import.meta.dirname, '../../.cache/check-openapi');
const DOCUMENTS = { complete: '/openapi.json', agent: '/openapi/agent.json' };
const NPM_PACKAGES = ['openapi-typescript@7.13.0', '@hey-api/openapi-ts@0.95.0', 'typescript@5.9.3'];
const PYTHON_PACKAGES = [
  'openapi-python-client==0.29.0',
  'mypy==2.4.1',
  'ruff==0.17.6',
  'httpx==0.28.1',
  'attrs==26.1.0',
];
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    module: 'esnext',
    moduleResolution: 'bundler',
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    types: [],
  },
  include: ['made/**/*.ts'],
};
/** Types of content that openapi-python-client does not know. Amazon sends JSON as text/plain. */
const PYTHON_CONFIG = `content_type_overrides:
  application/samlmetadata+xml: text/xml
  message/rfc822: application/octet-stream
  text/plain: application/json
`;
/** The same in every generated client, and not well typed. */
const MYPY_CONFIG = `[mypy]
[mypy-complete.client,agent.client]
ignore_errors = True
`;

const bin = (name: string) => join(FOLDER, 'node_modules/.bin', name);
const python = (name: string) => join(FOLDER, 'venv/bin', name);

async function run(program: string, ...args: string[]): Promise<void> {
  const env = { ...process.env, PATH: `${join(FOLDER, 'venv/bin')}:${process.env.PATH}`, NO_COLOR: '1' };
  const { stdout, stderr } = await promisify(execFile)(program, args, {
    cwd: FOLDER,
    env,
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: { stdout?: string; stderr?: string; message: string }) => {
    throw new Error(
      `${program} failed\n${error.stdout ?? ''}${error.stderr ?? ''}${error.message}`.slice(0, 20_000),
    );
  });
  const output = stdout + stderr;
  if (/\bwarn/i.test(output)) throw new Error(`${program} warns\n${output.slice(0, 20_000)}`);
}

async function install(): Promise<void> {
  await mkdir(FOLDER, { recursive: true });
  await writeFile(join(FOLDER, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  await writeFile(join(FOLDER, 'python.yml'), PYTHON_CONFIG);
  await writeFile(join(FOLDER, 'mypy.ini'), MYPY_CONFIG);
  const wanted = [...NPM_PACKAGES, ...PYTHON_PACKAGES].join('\n');
  const installed = join(FOLDER, 'installed.txt');
  if (existsSync(installed) && (await readFile(installed, 'utf8')) === wanted) return;
  await writeFile(join(FOLDER, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  await run('npm', 'install', '--no-audit', '--no-fund', '--save-exact', '--loglevel=error', ...NPM_PACKAGES);
  await run('python3', '-m', 'venv', 'venv');
  await run(python('pip'), 'install', '--quiet', '--disable-pip-version-check', ...PYTHON_PACKAGES);
  await writeFile(installed, wanted);
}

/** Types whose names a generator had to make distinct: the document has two of that name. */
async function findNumberedTypes(folder: string): Promise<string[]> {
  const files = (await readdir(join(FOLDER, folder), { recursive: true })).filter((name) =>
    /\.(ts|py)$/.test(name),
  );
  const texts = await Promise.all(files.map((name) => readFile(join(FOLDER, folder, name), 'utf8')));
  return texts.flatMap((text) =>
    [...text.matchAll(/^(?:export type|export interface|class) (\w*\d)\b/gm)].map(([, name = '']) => name),
  );
}

async function checkDocument(name: string, document: string): Promise<void> {
  const file = `${name}.json`;
  await writeFile(join(FOLDER, file), document);
  await run(bin('openapi-typescript'), file, '--output', `made/${name}/openapi-typescript.ts`);
  await run(bin('openapi-ts'), '--input', file, '--output', `made/${name}/hey-api`, '--no-log-file');
  const options = ['--meta', 'none', '--output-path', name, '--config', 'python.yml', '--overwrite'];
  await run(python('openapi-python-client'), 'generate', '--path', file, ...options);
  await run(python('mypy'), '--config-file', 'mypy.ini', name);
  const numbered = [...(await findNumberedTypes(`made/${name}`)), ...(await findNumberedTypes(name))];
  if (numbered.length > 0) throw new Error(`Generated types have numbers: ${numbered.join(', ')}`);
  console.log(`${DOCUMENTS[name as keyof typeof DOCUMENTS]}: ${document.length} characters, three clients`);
}

async function main(): Promise<void> {
  await install();
  const documents = await readOpenApiDocuments(Object.values(DOCUMENTS));
  for (const [name, path] of Object.entries(DOCUMENTS)) {
    await Promise.all(
      [name, `made/${name}`].map((folder) => rm(join(FOLDER, folder), { recursive: true, force: true })),
    );
    await checkDocument(name, documents.get(path) ?? '');
  }
  await run(bin('tsc'), '--project', '.');
  console.log('The clients are generated without a warning, and type-check.');
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  },
);
