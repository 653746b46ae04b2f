import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { generate } from 'otplib';
import pg from 'pg';
import type { FirstRun } from '../../dev/first-run.ts';
import { freePortVariables, readDevSettings, requiredPorts } from '../../dev/settings.ts';
import { commandLine } from '../../dev/stack/child-process.ts';
import { COMPILED_MODULES } from '../support/compiled-modules.ts';
import { eventually } from '../support/eventually.ts';
import { expectWithin } from '../support/expect-within.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

let dataDir: string;
let environment: NodeJS.ProcessEnv;
let running: Started | undefined;

interface Started {
  pid: number;
  output(): string;
  exited: Promise<number | null>;
}

function start(...flags: string[]): Started {
  const child = spawn(process.execPath, ['dev/start.ts', ...flags], { cwd: ROOT, env: environment });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  running = {
    pid: child.pid ?? 0,
    output: () => output,
    exited: once(child, 'exit').then(([code]) => code as number | null),
  };
  return running;
}

function firstRun(): FirstRun {
  return JSON.parse(readFileSync(join(dataDir, 'first-run.json'), 'utf8')) as FirstRun;
}

async function untilReady(started: Started): Promise<FirstRun> {
  await eventually(() => {
    if (!existsSync(join(dataDir, 'first-run.json'))) throw new Error(started.output());
  }, 90_000);
  return firstRun();
}

/** Processes whose command line contains the data folder or one of the ports, which no other test uses. */
function leftovers(): string[] {
  const ports = requiredPorts(readDevSettings(environment));
  const marks = [dataDir, ...ports.map(({ port }) => `--port ${port} `)];
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map((pid) => commandLine(Number(pid)) ?? '')
    .filter((line) => marks.some((mark) => line.includes(mark)));
}

/** Signs in as the staff member of the first run, with both factors, and returns their role. */
async function readStaffRole({ base_url, staff }: FirstRun): Promise<string> {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${base_url}/api/v1/auth/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return (await response.json()) as Record<string, string>;
  };
  const { mfa_token } = await post('login', { email: staff.email, password: staff.password });
  const code = await generate({ secret: staff.totp_secret });
  const { token } = await post('mfa/challenge', { mfa_token, method: 'totp', code });
  const me = await fetch(`${base_url}/api/v1/admin/me`, { headers: { authorization: `Bearer ${token}` } });
  return ((await me.json()) as { role: string }).role;
}

beforeAll(async () => {
  dataDir = join(mkdtempSync(join(tmpdir(), 'start-test-')), 'data');
  // The user PostgreSQL runs as under root cannot enter a folder made by mkdtemp.
  if (process.getuid?.() === 0) await run('chmod', ['755', resolve(dataDir, '..')]);
  environment = {
    ...COMPILED_MODULES,
    ...(await freePortVariables()),
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DEV_DATA_DIR: dataDir,
  };
});

afterEach(async () => {
  if (running && commandLine(running.pid)?.includes('dev/start.ts')) process.kill(running.pid, 'SIGTERM');
  await running?.exited;
});

afterAll(() => rmSync(resolve(dataDir, '..'), { recursive: true, force: true }));

describe('npm start', () => {
  test('starts everything, stops within 15 seconds, and starts again with the same data', async () => {
    const first = start();
    const facts = await untilReady(first);
    expect(statSync(join(dataDir, 'first-run.json')).mode & 0o777).toBe(0o600);
    expect(facts).toMatchObject({ org_id: expect.any(String), mail_ui: expect.any(String) });
    for (const url of [`${facts.base_url}/docs`, facts.mail_ui, facts.temporal_ui ?? ''])
      expect((await fetch(url, { headers: { accept: 'text/html' } })).status).toBe(200);
    expect(await readStaffRole(facts)).toBe('admin');
    const tools = /^ {2}MCP +(\S+)$/m.exec(first.output())?.[1] ?? '';
    // What hosts that sign in compare with the address that the person entered.
    const refused = await fetch(tools, { method: 'POST' });
    const [, metadata = ''] =
      /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '') ?? [];
    expect(((await (await fetch(metadata)).json()) as { resource: string }).resource).toBe(tools);
    const command = /^ {2}(curl .*)$/m.exec(first.output())?.[1] ?? '';
    const pasted = await run('sh', ['-c', command]);
    expect(JSON.parse(pasted.stdout)).toMatchObject({ email: 'first-agent@agents.example' });

    process.kill(first.pid, 'SIGINT');
    expect(await expectWithin(15_000, () => first.exited)).toBe(0);
    expect(leftovers()).toEqual([]);

    const again = await untilReady(start());
    expect(again).toEqual(facts);
    const repeated = await run('sh', ['-c', command]);
    expect(JSON.parse(repeated.stdout)).toEqual(JSON.parse(pasted.stdout));
  }, 240_000);

  test('stops processes that a start killed by SIGKILL left running', async () => {
    const killed = start('--parts');
    await eventually(() => expect(killed.output()).toContain('The parts are up'), 60_000);
    // Without them nothing can be done with the service that is then started.
    await eventually(() =>
      expect(killed.output()).toMatch(/as staff +\S+@\S+ +\S+ +TOTP \S+\n +API key +ask_live_/),
    );
    expect(existsSync(join(dataDir, 'first-run.json'))).toBe(true);
    process.kill(killed.pid, 'SIGKILL');
    await killed.exited;
    expect(leftovers().length).toBeGreaterThanOrEqual(3);
    const next = start('--parts');
    await eventually(() => expect(next.output()).toContain('The parts are up'), 60_000);
    expect(next.output()).toContain('left running by an earlier start');
    process.kill(next.pid, 'SIGHUP');
    expect(await next.exited).toBe(0);
    expect(leftovers()).toEqual([]);
  }, 180_000);

  test('names a port that is in use, and rejects a second start on the same data', async () => {
    const blocker = createServer().listen(Number(environment.DEV_S3_PORT), '127.0.0.1');
    const blocked = start('--parts');
    expect(await blocked.exited).toBe(1);
    expect(blocked.output()).toContain(
      `Port ${environment.DEV_S3_PORT} (S3 server) is taken: stop what listens there, or set DEV_S3_PORT to another port.`,
    );
    blocker.close();

    const holder = start('--parts');
    await eventually(() => expect(holder.output()).toContain('is ready'), 60_000);
    const second = start('--parts');
    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(`Another start is running (pid ${holder.pid})`);
    process.kill(holder.pid, 'SIGTERM');
    expect(await holder.exited).toBe(0);
    expect(leftovers()).toEqual([]);
  }, 120_000);

  test('rejects data of another version and says how to reset it', async () => {
    const earlier = start('--parts');
    await eventually(() => expect(earlier.output()).toContain('The parts are up'), 60_000);
    const { postgresPassword } = JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8'));
    const client = new pg.Client({
      connectionString: `postgresql://postgres:${postgresPassword}@127.0.0.1:${environment.DEV_POSTGRES_PORT}/agent_email`,
    });
    await client.connect();
    await client.query(`insert into mikro_orm_migrations (name) values ('Migration20261121000000')`);
    await client.end();
    process.kill(earlier.pid, 'SIGTERM');
    expect(await earlier.exited).toBe(0);

    const refused = start('--parts');
    expect(await refused.exited).toBe(1);
    const lines = refused.output().trim().split('\n');
    expect(lines.at(-1)).toBe(
      'The database belongs to another version of the service: it has 1 migration(s) that are unknown to this version (Migration20261121000000). Run the version that created it, or start with an empty database: "npm start -- --reset" deletes the data of the embedded one.',
    );
    expect(lines.filter((line) => line.includes('Migration2026'))).toHaveLength(1);
    expect(leftovers()).toEqual([]);

    const reset = start('--reset', '--parts');
    await eventually(() => expect(reset.output()).toContain('The parts are up'), 60_000);
    process.kill(reset.pid, 'SIGTERM');
    expect(await reset.exited).toBe(0);
  }, 180_000);
});
