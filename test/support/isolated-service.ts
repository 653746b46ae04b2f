import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Client } from '@temporalio/client';
import { FIRST_RUN_FILE } from '../../dev/data-folder.ts';
import { freePortVariables } from '../../dev/settings.ts';
import { findFreePort } from '../../dev/stack/ports.ts';
import { type Config, loadConfig } from '../../platform/config.ts';
import { COMPILED_MODULES } from './compiled-modules.ts';
import { createParts, type Parts, readService, type ServiceProcess } from './isolated-parts.ts';
import { findSharedService } from './service.ts';
import { connectToTemporal } from './temporal-connection.ts';

const ROOT = resolve(import.meta.dirname, '..', '..');
const READY_TIMEOUT_MS = 180_000;

/** The service in separate, unsupervised processes with data of their own: for crash tests, other relays and the bench. */
export interface IsolatedService {
  baseUrl: string;
  apiKey: string;
  inboundPort: number;
  ownerDatabaseUrl: string;
  /** The workers' configuration, for tests that read storage. */
  config: Config;
  /** A client for its namespace. The caller closes its connection. */
  connectToTemporal(): Promise<Client>;
  /** Everything the process has printed, also before a restart. */
  outputOf(name: ServiceProcess): string;
  /** Resident memory, in bytes. */
  residentBytes(name: ServiceProcess): number;
  /** Sends SIGKILL, so that the process cannot clean up. */
  kill(name: ServiceProcess): Promise<void>;
  /** Sends SIGTERM, as a supervisor does. Returns the exit code. */
  shutDown(name: ServiceProcess): Promise<number | null>;
  /** Restarts a killed process and waits until it is ready. */
  start(name: ServiceProcess): Promise<void>;
  /** Starts another process with the workers' configuration, and waits until it is ready. It stops with the service. */
  startScript(script: string, overrides: Record<string, string>): Promise<number>;
  /** Starts another API on a port of its own, and waits until it is ready. It stops with the service. */
  startApi(): Promise<{ baseUrl: string; pid: number }>;
  stop(): Promise<void>;
}

/**
 * Starts API and workers. In the e2e tier their database, bucket and namespace are on the servers of the tier's service; the
 * bench starts servers of its own.
 *
 * @param overrides settings of API and workers that replace those of `npm start`.
 * @param environments variables of each that replace both.
 */
export async function startIsolatedService(
  overrides: Record<string, string>,
  environments: Partial<Record<ServiceProcess, Record<string, string>>> = {},
): Promise<IsolatedService> {
  const directory = mkdtempSync(join(tmpdir(), 'agent-email-own-'));
  // Under root the database server runs as another user, who must be able to enter.
  chmodSync(directory, 0o755);
  const ports = await freePortVariables();
  const shared = findSharedService();
  const parts = shared === undefined ? await startParts(directory, ports) : await createParts(shared);
  const scripts = { api: 'api/server.ts', workers: 'workers/all.ts' };
  const settingsOf = (name: ServiceProcess) => ({
    ...parts.settings[name],
    API_PORT: ports.api,
    PUBLIC_URL: `http://localhost:${ports.api}`,
    INBOUND_SMTP_PORT: ports.inboundSmtp,
    SUBMISSION_SMTP_PORT: ports.submissionSmtp,
    WORKER_HEALTH_PORT: ports.workerHealth,
    ...UNLIMITED,
    ...overrides,
    ...environments[name],
  });
  const settings = { api: settingsOf('api'), workers: settingsOf('workers') };
  const config = loadConfig(settings.workers);
  const readiness = {
    api: `http://127.0.0.1:${ports.api}/health/ready`,
    workers: `http://127.0.0.1:${ports.workerHealth}/health/ready`,
  };
  const logOf = (name: ServiceProcess) => join(directory, `${name}.output`);
  const processes: Partial<Record<ServiceProcess, ChildProcess>> = {};
  const start = async (name: ServiceProcess) => {
    processes[name] = run([scripts[name]], settings[name], logOf(name));
    await waitForHttp(readiness[name]);
  };
  const further: ChildProcess[] = [];
  const stop = async () => {
    await Promise.all([...further, processes.workers, processes.api].map((child) => terminate(child)));
    await parts.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await Promise.all([start('api'), start('workers')]);
  } catch (error) {
    const outputs = [logOf('api'), logOf('workers')].map((file) => readFileSync(file, 'utf8'));
    await stop();
    throw new Error(`The service did not start.\n${outputs.join('')}`, { cause: error });
  }
  return {
    baseUrl: `http://127.0.0.1:${ports.api}`,
    apiKey: parts.apiKey,
    inboundPort: Number(ports.inboundSmtp),
    ownerDatabaseUrl: parts.ownerDatabaseUrl,
    config,
    async connectToTemporal() {
      const connection = await connectToTemporal(config.TEMPORAL_ADDRESS);
      return new Client({ connection, namespace: config.TEMPORAL_NAMESPACE });
    },
    outputOf: (name) => readFileSync(logOf(name), 'utf8'),
    residentBytes: (name) => residentBytes(processes[name]?.pid),
    start,
    async startScript(script, own) {
      const [port] = Object.values(await freePortVariables());
      const child = run([script], { ...settings.workers, WORKER_HEALTH_PORT: String(port), ...own });
      further.push(child);
      await waitForHttp(`http://127.0.0.1:${own.WORKER_HEALTH_PORT ?? port}/health/ready`);
      return child.pid ?? 0;
    },
    async startApi() {
      const { baseUrl, child } = await startFurtherApi(settings.api);
      further.push(child);
      return { baseUrl, pid: child.pid ?? 0 };
    },
    kill: (name) => terminate(processes[name], 'SIGKILL'),
    async shutDown(name) {
      await terminate(processes[name], 'SIGTERM');
      return processes[name]?.exitCode ?? null;
    },
    stop,
  };
}

/** Starts the dependencies of `npm start`: with a durable PostgreSQL, as in production. */
async function startParts(directory: string, ports: NodeJS.ProcessEnv): Promise<Parts> {
  const child = run(['dev/start.ts', '--parts'], { ...process.env, ...ports, DEV_DATA_DIR: directory });
  const stop = () => terminate(child);
  try {
    await waitFor(`${directory} to be complete`, async () => readFileSync(join(directory, FIRST_RUN_FILE)));
  } catch (error) {
    await stop();
    throw error;
  }
  const { settings, postgres } = readService(directory);
  const { apiKey } = JSON.parse(readFileSync(join(directory, 'seed.json'), 'utf8')) as { apiKey: string };
  return { settings, ownerDatabaseUrl: `${postgres}/agent_email`, apiKey, stop };
}

/** Starts another API, on a port of its own, and waits until it is ready. End it with {@link terminate}. */
export async function startFurtherApi(
  environment: Record<string, string>,
): Promise<{ baseUrl: string; child: ChildProcess }> {
  const port = await findFreePort();
  const child = run(['api/server.ts'], { ...environment, API_PORT: String(port) });
  const baseUrl = `http://127.0.0.1:${port}`;
  await waitForHttp(`${baseUrl}/health/ready`);
  return { baseUrl, child };
}

const UNLIMITED = {
  LOG_LEVEL: 'warn',
  RATE_LIMIT_PER_SECOND: '100000',
  RATE_LIMIT_BURST: '100000',
  ORGANIZATION_RATE_LIMIT_PER_SECOND: '100000',
  ORGANIZATION_RATE_LIMIT_BURST: '100000',
};

/** @param log file for the output; without one, errors go to this process's. */
function run(args: string[], environment: NodeJS.ProcessEnv, log?: string): ChildProcess {
  const output = log === undefined ? undefined : openSync(log, 'a');
  try {
    return spawn(process.execPath, args, {
      cwd: ROOT,
      env: { ...COMPILED_MODULES, ...environment },
      stdio: ['ignore', output ?? 'ignore', output ?? 'inherit'],
    });
  } finally {
    if (output !== undefined) closeSync(output);
  }
}

async function waitForHttp(url: string): Promise<void> {
  await waitFor(`${url} to answer`, async () => {
    if (!(await fetch(url)).ok) throw new Error(`${url} is not ready`);
  });
}

export async function waitFor<T>(
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

/** Returns 0 if the process has exited. */
export function residentBytes(pid: number | undefined): number {
  if (!existsSync(`/proc/${pid}/status`)) return 0;
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
}

export function terminate(
  child: ChildProcess | undefined,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((done) => {
    child.once('exit', () => done());
    child.kill(signal);
  });
}
