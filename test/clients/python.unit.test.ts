import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { NAVIGATION } from '../../dev/docs/navigation.ts';
import { readOpenApiDocuments } from '../../dev/openapi/documents.ts';
import { findPython, MYPY_CACHE, PYTHON_CLIENT, preparePython } from '../../dev/python-environment.ts';

// The first run installs the packages, and mypy reads all of them.
jest.setTimeout(900_000);

const interpreter = findPython();
// Skipped tests are counted, and .ci/run reports them.
const describeIfInstalled = interpreter === null ? describe.skip : describe;
if (interpreter === null)
  console.warn('Python 3.10 or newer with venv is not installed: the Python client is not tested');

const MYPY = ['-m', 'mypy', '--strict', '--python-version', '3.10', '--cache-dir', MYPY_CACHE];
const folder = mkdtempSync(join(tmpdir(), 'agent-email-python-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Generated, or only a list of names. */
const NOT_WRITTEN = /^(?:types|params|_resources|_async_resources|_error_codes|__init__)\.py$/;
/** Loaded only by those who offer tools to a model. */
const ENTRY_POINTS = /^(?:_tools|langchain|openai_agents)\.py$/;
/** The core of the client, which people write. */
const WRITTEN = readdirSync(join(PYTHON_CLIENT, 'src/agent_email')).filter(
  (name) => name.endsWith('.py') && !NOT_WRITTEN.test(name) && !ENTRY_POINTS.test(name),
);

/** What samples of the guides take for granted. */
const GIVEN = `from typing import Mapping
from agent_email import AgentEmail
client = AgentEmail()
body: bytes = b""
headers: Mapping[str, str] = {}
secret: str = ""
`;

/** The programs of a guide. The blocks of the quickstart are one; others stand alone. Those of the recipes run in a test of their own. */
function readPythonSamples(file: string, slug: string): { name: string; code: string }[] {
  const blocks = [...readFileSync(resolve(file), 'utf8').matchAll(/^```python\n([\s\S]*?)^```$/gm)];
  const codes = blocks.map(([, code = '']) => code);
  const name = slug.replace(/\W/g, '_') || 'index';
  if (slug === 'quickstart') return [{ name, code: codes.join('\n') }];
  // A block that declares a name of its own otherwise declares it twice.
  return codes.map((code) => ({ name, code: /^headers = /m.test(code) ? code : GIVEN + code }));
}

/** Lines of code: without blank lines, comments and docstrings. */
function countCode(text: string): number {
  const code = text.replace(/^\s*"""[\s\S]*?"""$/gm, '').split('\n');
  return code.filter((line) => line.trim() !== '' && !line.trim().startsWith('#')).length;
}

test('the core of the Python client has at most 1,000 lines of code', () => {
  const lines = WRITTEN.map((name) =>
    countCode(readFileSync(join(PYTHON_CLIENT, 'src/agent_email', name), 'utf8')),
  );
  expect(WRITTEN.length).toBeGreaterThan(8);
  expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(1_000);
});

describeIfInstalled('the Python client', () => {
  let python = '';
  /** Its output, or an error with it. */
  const run = async (program: string, args: string[], env: Record<string, string> = {}): Promise<string> => {
    const options = { cwd: PYTHON_CLIENT, env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...env } };
    try {
      const { stdout } = await promisify(execFile)(program, args, { ...options, maxBuffer: 16_777_216 });
      return stdout;
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      throw new Error(`${args.join(' ')} failed:\n${stdout}\n${stderr}`);
    }
  };
  beforeAll(async () => {
    python = await preparePython(interpreter ?? '');
  });

  test('passes its own tests, for every operation of the document', async () => {
    const document = join(folder, 'openapi.json');
    writeFileSync(document, (await readOpenApiDocuments(['/openapi.json'])).get('/openapi.json') ?? '');
    // Those of the running service are run by python.e2e.test.ts.
    const selected = ['tests', '--ignore=tests/test_service.py'];
    const args = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', ...selected];
    const output = await run(python, args, { PYTHONPATH: 'src', AGENT_EMAIL_OPENAPI: document });
    expect(output).toMatch(/\n\d{3} passed in /);
  });

  test('passes mypy --strict, with its tests and for the oldest Python', async () => {
    expect(await run(python, [...MYPY, 'src/agent_email', 'tests'], { MYPYPATH: 'src:tests' })).toContain(
      'Success',
    );
  });

  test('has samples in the guides that pass mypy --strict', async () => {
    const files = NAVIGATION.flatMap(({ guides }) => guides)
      .filter(({ slug }) => slug !== 'recipes')
      .flatMap(({ file, slug }) => readPythonSamples(file, slug));
    expect(files.length).toBeGreaterThan(8);
    const samples = join(folder, 'samples');
    mkdirSync(samples);
    for (const [index, { name, code }] of files.entries())
      writeFileSync(join(samples, `${name}_${index}.py`), code);
    const output = await run(python, [...MYPY, samples], { MYPYPATH: resolve(PYTHON_CLIENT, 'src') });
    expect(output).toContain(`Success: no issues found in ${files.length} source files`);
  });

  test('builds a wheel and an sdist with all that a publication needs', async () => {
    const dist = join(folder, 'dist');
    await run(python, ['-m', 'build', '--no-isolation', '--outdir', dist, PYTHON_CLIENT]);
    const built = readdirSync(dist).sort();
    expect(built).toEqual(['agent_email-0.1.0-py3-none-any.whl', 'agent_email-0.1.0.tar.gz']);
    const list = 'import sys, zipfile; [print(name) for name in zipfile.ZipFile(sys.argv[1]).namelist()]';
    const names = (await run(python, ['-c', list, join(dist, built[0] ?? '')])).trim().split('\n');
    expect(names).toEqual(
      expect.arrayContaining([
        'agent_email/py.typed',
        'agent_email/_resources.py',
        'agent_email-0.1.0.dist-info/licenses/LICENSE',
      ]),
    );
    const read = `import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).read('agent_email-0.1.0.dist-info/METADATA').decode())`;
    const metadata = await run(python, ['-c', read, join(dist, built[0] ?? '')]);
    for (const line of [
      'Name: agent-email',
      'License-Expression: Apache-2.0',
      'Requires-Python: >=3.10',
      'Classifier: Typing :: Typed',
      'Description-Content-Type: text/markdown',
      'Requires-Dist: httpx>=0.27,<1',
      '# agent-email',
    ])
      expect(metadata.split('\n')).toContain(line);
  });
});
