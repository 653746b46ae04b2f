import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export type Log = (line: string) => void;

export interface ChildOptions {
  /** For log lines and errors, e.g. "PostgreSQL". */
  name: string;
  command: string;
  args: string[];
  /** stdout and stderr are appended to it. */
  logFile: string;
  /** Holds the pid while the child runs, so that a later start can stop what a killed start left running. */
  pidFile?: string;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  uid?: number;
  gid?: number;
  /** Signal that stops the child; default SIGTERM. */
  stopSignal?: NodeJS.Signals;
  /** Time until the child is killed; default 10 s. */
  stopTimeoutMs?: number;
}

export interface Child {
  readonly name: string;
  readonly pid: number;
  /** Resolves with the reason when the child exits. */
  readonly exited: Promise<string>;
  /** The reason why the child exited; undefined while it runs. */
  exitReason(): string | undefined;
  /** For `waitUntil`: an error with the end of the log, once the child has exited. */
  failure(): Error | undefined;
  /** Stops the child, and kills it after the timeout. Resolves when it has exited; safe to call twice. */
  stop(): Promise<void>;
  /** Sends SIGKILL, for crash tests. */
  kill(): Promise<void>;
}

/** Stops the remaining children if this process dies of an error. */
const living = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

/**
 * Starts a child in its own process group, so that Ctrl-C in a terminal reaches only this process, which stops its
 * children in order (the database last).
 */
export async function startChild(options: ChildOptions): Promise<Child> {
  mkdirSync(dirname(options.logFile), { recursive: true });
  const log = openSync(options.logFile, 'a');
  const logStart = statSync(options.logFile).size;
  const { command, args, cwd, uid, gid, env } = options;
  const child = spawn(command, args, { cwd, uid, gid, env, detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  await started(child, options.name);
  const pid = child.pid as number;
  living.add(child);
  if (options.pidFile) writeFileSync(options.pidFile, `${pid}\n${[command, ...args].join(' ')}\n`);

  let reason: string | undefined;
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => {
      living.delete(child);
      if (options.pidFile) rmSync(options.pidFile, { force: true });
      reason = signal ? `ended by ${signal}` : `ended with status ${code}`;
      resolve(reason);
    });
  });

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (reason !== undefined) return;
    child.kill(signal);
    const patience = new AbortController();
    const late = sleep(options.stopTimeoutMs ?? 10_000, 'late' as const, { signal: patience.signal }).catch(
      () => 'aborted' as const,
    );
    if ((await Promise.race([exited, late])) === 'late') child.kill('SIGKILL');
    await exited;
    patience.abort();
  }

  return {
    name: options.name,
    pid,
    exited,
    exitReason: () => reason,
    failure: () =>
      reason === undefined
        ? undefined
        : new Error(`${options.name} ${reason}. ${tail(options.logFile, logStart)}`),
    stop: () => end(options.stopSignal ?? 'SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

function started(child: ChildProcess, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => reject(new Error(`${name} could not be started: ${error.message}`)));
  });
}

/** The last lines this run wrote: what a person needs first when a part does not come up. */
function tail(logFile: string, from: number): string {
  const text = readFileSync(logFile).subarray(from).toString('utf8').trimEnd();
  const lines = text.split('\n').slice(-12);
  return `${logFile} ends with:\n  ${lines.join('\n  ')}`;
}

/**
 * Stops a child that a killed start left running. Another program may have its pid by now, so the process is stopped
 * only if its command line is still the one it was started with.
 */
export async function stopLeftover(pidFile: string, name: string, log: Log): Promise<void> {
  const pid = processOf(pidFile);
  if (pid !== undefined) {
    log(`Stopping ${name} (pid ${pid}), left running by an earlier start`);
    await endProcess(pid, 'SIGTERM');
  }
  rmSync(pidFile, { force: true });
}

/** Signals a process that is no child of this one, and kills it when it stays longer than `timeoutMs`. */
export async function endProcess(pid: number, signal: NodeJS.Signals, timeoutMs = 10_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  const identity = commandLine(pid);
  send(pid, signal);
  while (isAlive(pid) && commandLine(pid) === identity) {
    if (Date.now() > deadline) send(pid, 'SIGKILL');
    await sleep(50);
  }
}

/** The pid in a file `startChild` or `writePidFile` wrote, if that very process still runs. */
export function processOf(pidFile: string): number | undefined {
  const [pidText, ...rest] = readPidFile(pidFile);
  const pid = Number(pidText);
  return pid > 1 && commandLine(pid) === rest.join('\n').trim() ? pid : undefined;
}

/** Marks this process itself as running. */
export function writePidFile(pidFile: string): void {
  writeFileSync(pidFile, `${process.pid}\n${commandLine(process.pid) ?? ''}\n`);
}

function readPidFile(pidFile: string): string[] {
  try {
    return readFileSync(pidFile, 'utf8').split('\n');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The command line of a process; undefined where there is none, or it has ended and waits for its parent. */
export function commandLine(pid: number): string | undefined {
  if (process.platform === 'linux') {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
      return words === '' ? undefined : words;
    } catch {
      return undefined;
    }
  }
  const shown = spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' });
  return shown.status === 0 ? shown.stdout.trim() : undefined;
}
