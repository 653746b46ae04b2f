import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { FirstRun } from '../../dev/first-run.ts';
import { freePortVariables } from '../../dev/settings.ts';
import { createTemplate } from './isolated-parts.ts';

const ROOT = resolve(import.meta.dirname, '..', '..');
const VARIABLE = 'AGENT_EMAIL_TEST_SERVICE';
const READY_TIMEOUT_MS = 300_000;

/** The whole service, started like `npm start` in a separate folder and on free ports. */
export interface RunningService {
  dataDir: string;
  firstRun: FirstRun;
  /** Its output so far. */
  output(): string;
  /** Sends SIGINT. Resolves with the exit code. */
  stop(): Promise<number | null>;
}

/** @param overrides variables that replace those of this process. */
export async function startService(
  overrides: NodeJS.ProcessEnv = {},
  dataDir = mkdtempSync(join(tmpdir(), 'agent-email-service-')),
): Promise<RunningService> {
  // Under root the database server runs as another user, who must be able to enter.
  chmodSync(dataDir, 0o755);
  let output = '';
  const child = spawn(process.execPath, ['dev/start.ts'], {
    cwd: ROOT,
    env: { ...process.env, ...(await freePortVariables()), DEV_DATA_DIR: dataDir, ...overrides },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const exited = new Promise<number | null>((done) => child.once('exit', done));
  const firstRun = await untilReady(child, join(dataDir, 'first-run.json'), () => output);
  return {
    dataDir,
    firstRun,
    output: () => output,
    stop: () => {
      child.kill('SIGINT');
      return exited;
    },
  };
}

async function untilReady(child: ChildProcess, file: string, output: () => string): Promise<FirstRun> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!existsSync(file)) {
    if (child.exitCode !== null) throw new Error(`The service ended before it was ready:\n${output()}`);
    if (Date.now() > deadline) {
      child.kill('SIGINT');
      throw new Error(`The service was not ready within ${READY_TIMEOUT_MS} ms:\n${output()}`);
    }
    await new Promise((done) => setTimeout(done, 100));
  }
  return JSON.parse(readFileSync(file, 'utf8')) as FirstRun;
}

const holder = globalThis as typeof globalThis & { agentEmailService?: RunningService };

/** Starts one service for all files of the e2e tier. */
export async function startSharedService(): Promise<void> {
  const service = await startService();
  holder.agentEmailService = service;
  // Jest runs no teardown after a failed set-up.
  await createTemplate(service.dataDir).catch(async (error: unknown) => {
    await stopSharedService();
    throw error;
  });
  process.env[VARIABLE] = service.dataDir;
}

export async function stopSharedService(): Promise<void> {
  const service = holder.agentEmailService;
  if (!service) return;
  await service.stop();
  if (!process.env.KEEP_TEST_DATA) rmSync(service.dataDir, { recursive: true, force: true });
}

/** The folder of the shared service, if the tier has one. */
export const findSharedService = (): string | undefined => process.env[VARIABLE];

/** Addresses and credentials of the shared service. */
export function sharedService(): FirstRun & { dataDir: string } {
  const dataDir = findSharedService();
  if (!dataDir) throw new Error('This tier has no service: name the file *.e2e.test.ts');
  return { ...(JSON.parse(readFileSync(join(dataDir, 'first-run.json'), 'utf8')) as FirstRun), dataDir };
}
