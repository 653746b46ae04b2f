import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv, promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { findPython, PYTHON_CLIENT, preparePython } from '../../dev/python-environment.ts';
import type { Database } from '../../platform/database/database.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { startFurtherApi, terminate } from '../support/isolated-service.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { sharedService } from '../support/service.ts';
import { connect } from '../support/test-app.ts';

// The first run installs the packages.
jest.setTimeout(300_000);

const interpreter = findPython();
// Skipped tests are counted, and .ci/run reports them.
const describeIfInstalled = interpreter === null ? describe.skip : describe;
if (interpreter === null)
  console.warn('Python 3.10 or newer with venv is not installed: the Python client is not tested');

describeIfInstalled('the Python client with the running service', () => {
  const service = sharedService();
  const folder = mkdtempSync(join(tmpdir(), 'agent-email-python-'));
  let python = '';
  let database: Database;
  let organization: TestOrganization;
  beforeAll(async () => {
    python = await preparePython(interpreter ?? '');
    database = connect(service.database_url);
    organization = await createOrganization(database);
  });
  afterAll(async () => {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Its output, or an error with it. */
  async function run(
    program: string,
    args: string[],
    { cwd = PYTHON_CLIENT, env = {} }: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
  ): Promise<string> {
    const options = { cwd, env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...env } };
    try {
      return (await promisify(execFile)(program, args, { ...options, maxBuffer: 16_777_216 })).stdout;
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}\n${stderr}`);
    }
  }

  test('sends once, resumes after kill -9, waits, and offers the tools', async () => {
    const settings = parseEnv(readFileSync(join(service.dataDir, 'api.env'), 'utf8')) as Record<
      string,
      string
    >;
    const start = () => startFurtherApi({ ...settings, LOG_LEVEL: 'warn' });
    let api = await start();
    await using proxy = await CuttingProxy.start(api.baseUrl);
    const act = async (path: string): Promise<void> => {
      if (path.startsWith('/lose/')) proxy.answersToLose = Number(path.slice('/lose/'.length));
      if (path === '/kill') await terminate(api.child, 'SIGKILL');
      if (path !== '/start') return;
      api = await start();
      proxy.retarget(api.baseUrl);
    };
    const control = createServer((request, response) => {
      act(request.url ?? '').then(() => response.end());
    });
    await new Promise<void>((done) => control.listen(0, '127.0.0.1', done));
    const places = {
      base_url: service.base_url,
      api_key: organization.token,
      proxy_url: proxy.url,
      control_url: `http://127.0.0.1:${(control.address() as AddressInfo).port}`,
      inbound_smtp: service.inbound_smtp,
    };
    try {
      const args = ['-m', 'pytest', '-q', '-x', '-p', 'no:cacheprovider', 'tests/test_service.py'];
      const env = { PYTHONPATH: 'src', AGENT_EMAIL_TEST: JSON.stringify(places) };
      expect(await run(python, args, { env })).toMatch(/\n\d{2} passed in /);
    } finally {
      control.close();
      await terminate(api.child);
    }
  });

  test('as a wheel, runs the first example of its README in an empty environment', async () => {
    const dist = join(folder, 'dist');
    const build = ['-m', 'build', '--no-isolation', '--wheel', '--outdir', dist, PYTHON_CLIENT];
    await run(python, build);
    const own = join(folder, 'venv/bin/python');
    await run(interpreter ?? '', ['-m', 'venv', join(folder, 'venv')]);
    const wheel = join(dist, 'agent_email-0.1.0-py3-none-any.whl');
    await run(own, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', wheel]);
    const [, example = ''] =
      /```python\n([\s\S]*?)```/.exec(readFileSync(join(PYTHON_CLIENT, 'README.md'), 'utf8')) ?? [];
    expect(example).toContain('AgentEmail()');
    const env = { AGENT_EMAIL_API_KEY: organization.token, AGENT_EMAIL_BASE_URL: service.base_url };
    const output = await run(own, ['-c', example], { cwd: folder, env });
    expect(output).toMatch(/^\S+@\S+ wrote to ada@people\.example: delivered\n$/);
  });
});
