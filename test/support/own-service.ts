import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { freePortVariables } from '../dev/settings.ts';

const ROOT = resolve(import.meta.dirname, '..');
const READY_TIMEOUT_MS = 180_000;

export interface BenchStack {
  baseUrl: string;
  apiKey: string;
  inboundPort: number;
  ownerDatabaseUrl: string;
  temporalAddress: string;
  /** Resident memory of a process of ours, in bytes. */
  residentBytes(process: 'api' | 'workers'): number;
  stop(): Promise<void>;
}

/**
 * The parts of `npm start` in a folder of their own (PostgreSQL durable, as in production), and API and workers on
 * them as processes of their own.
 *
 * @param overrides configuration of API and workers, over that of `npm start`.
 */
export async function startBenchStack(overrides: Record<string, string>): Promise<BenchStack> {
  const directory = mkdtempSync(join(tmpdir(), 'agent-email-bench-'));
  const children: ChildProcess[] = [];
  const ports = await freePortVariables();
  const run = (args: string[], environment: NodeJS.ProcessEnv) => {
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      env: environment,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    children.push(child);
    return child;
  };
  run(['dev/start.ts', '--parts'], { ...process.env, ...ports, DEV_DATA_DIR: directory });
  const quiet = {
    LOG_LEVEL: 'warn',
    RATE_LIMIT_PER_SECOND: '100000',
    RATE_LIMIT_BURST: '100000',
    ORGANIZATION_RATE_LIMIT_PER_SECOND: '100000',
    ORGANIZATION_RATE_LIMIT_BURST: '100000',
  };
  const api = { ...(await fileOf(join(directory, 'api.env'))), ...quiet, ...overrides };
  const worker = { ...(await fileOf(join(directory, 'worker.env'))), ...quiet, ...overrides };
  const processes = { api: run(['api/server.ts'], api), workers: run(['workers/all.ts'], worker) };
  await answers(`http://127.0.0.1:${ports.api}/health/ready`);
  await answers(`http://127.0.0.1:${ports.workerHealth}/health/ready`);
  const seed = JSON.parse(readFileSync(join(directory, 'seed.json'), 'utf8')) as { apiKey: string };
  const secrets = JSON.parse(readFileSync(join(directory, 'secrets.json'), 'utf8')) as {
    postgresPassword: string;
  };
  return {
    baseUrl: `http://127.0.0.1:${ports.api}`,
    apiKey: seed.apiKey,
    inboundPort: Number(ports.inboundSmtp),
    ownerDatabaseUrl: `postgresql://postgres:${secrets.postgresPassword}@127.0.0.1:${ports.postgres}/agent_email`,
    temporalAddress: `127.0.0.1:${ports.temporal}`,
    residentBytes: (name) => residentBytes(processes[name].pid),
    async stop() {
      for (const child of children.toReversed()) await ended(child);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function fileOf(path: string): Promise<Record<string, string>> {
  return patiently(
    `${path} to appear`,
    async () => parseEnv(readFileSync(path, 'utf8')) as Record<string, string>,
  );
}

async function answers(url: string): Promise<void> {
  await patiently(`${url} to answer`, async () => {
    if (!(await fetch(url)).ok) throw new Error(`${url} is not ready`);
  });
}

export async function patiently<T>(
  what: string,
  attempt: () => Promise<T>,
  timeoutMs = READY_TIMEOUT_MS,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > deadline) throw new Error(`Waited ${timeoutMs} ms for ${what}`, { cause: error });
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

export function residentBytes(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
}

export function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((done) => {
    child.once('exit', () => done());
    child.kill('SIGTERM');
  });
}
