import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { createFairShare, type Holder, organizationHolder, thirdOf } from './concurrency/fair-share.ts';
import { yieldCpuOfChild } from './cpu-priority.ts';

/**
 * A pool of child processes for jobs that may never end or may exhaust memory. Packages for this (`piscina`, `workerpool`)
 * pass one message per call and do not limit resident memory. This pool streams input and output, limits resident
 * memory, and kills the process.
 */
export interface ChildPoolOptions {
  /** Its row in the table of shared capacities in docs/security.md. */
  name: string;
  /** Script of each child. It handles jobs one by one over standard input and output, and exits when its input ends. */
  entry: string;
  /** Node.js options, passed before the script. */
  nodeOptions: readonly string[];
  /**
   * Processes start on demand and are reused. A third more start only for organizations within their share: a job may last
   * long.
   */
  maxProcesses: number;
  /** Start a process ahead of the next job, which then need not wait for its start: seconds on a busy machine. Default: false. */
  keepsSpare?: boolean;
  /** Jobs of an organization that run at the same time, even if more processes are free. Default: no limit. */
  maxPerOrganization?: number;
  /** A child is replaced after this many jobs, or after a job that leaves it above three quarters of `maxResidentBytes`. */
  maxJobsPerProcess: number;
  /** A child above this is killed. Unlike a heap limit, it includes buffers. */
  maxResidentBytes: number;
}

/** A child process that runs one job. */
export interface Child {
  readonly input: Writable;
  readonly output: Readable;
  /** Sends SIGKILL, which ends `output`. Only the first reason is recorded. */
  kill(reason: string): void;
  /** Undefined while the child has not been killed. */
  readonly killReason: string | undefined;
  /** Processor time that all jobs of the process have used so far; undefined where the system does not tell it. */
  usedCpuMs(): Promise<number | undefined>;
}

export interface PoolUsage {
  /** Running jobs. */
  busy: number;
  /** Processes without a job. */
  idle: number;
  /** Jobs waiting for a process. */
  waiting: number;
}

export interface ChildPool {
  /**
   * Waits for a free child and runs the job on it; organizations share the children. A child that died or whose job threw is not reused.
   *
   * @param signal ends the wait, not the job.
   * @returns the result of the job.
   * @throws the signal's reason if it aborts before the job starts.
   */
  run<T>(organizationId: string, job: (child: Child) => Promise<T>, signal?: AbortSignal): Promise<T>;
  usage(): PoolUsage;
  close(): Promise<void>;
}

const MEMORY_CHECK_INTERVAL_MS = 200;
/** Of `maxResidentBytes`. At half of it, a few messages of 2 MB wore out a mail parser, and mail waited for the start of the next. */
const MAX_KEPT_PART = 0.75;

export interface TimeLimit {
  /** How long a job may take. */
  timeoutMs: number;
  /** A process that had less processor time than this was kept waiting by others, which says nothing about the job: it goes on. */
  minCpuMs: number;
  /** After this many times `timeoutMs` it is killed anyway. */
  checks: number;
}

/** Kills a process that takes too long for a job. */
export function limitTime(child: Child, { timeoutMs, minCpuMs, checks }: TimeLimit) {
  const usedBefore = child.usedCpuMs();
  let count = 0;
  let isOver = false;
  let isStarved = false;
  const timer = setInterval(async () => {
    count += 1;
    const [before, now] = await Promise.all([usedBefore, child.usedCpuMs()]);
    const waited = before !== undefined && now !== undefined && now - before < minCpuMs;
    if (isOver || (waited && count < checks)) return;
    isStarved = waited;
    child.kill(waited ? 'the machine was too busy' : `it took more than ${timeoutMs / 1_000} s`);
  }, timeoutMs);
  return {
    /** Whether the process was killed although it could hardly work: the job may be repeated. */
    isStarved: () => isStarved,
    stop() {
      isOver = true;
      clearInterval(timer);
    },
  };
}

interface Worker extends Child {
  process: ChildProcess;
  jobs: number;
}

export function createChildPool(options: ChildPoolOptions): ChildPool {
  const { name, maxProcesses, maxPerOrganization, maxJobsPerProcess, maxResidentBytes } = options;
  const reserve = thirdOf(maxProcesses);
  const slots = createFairShare({ name, capacity: maxProcesses, reserve });
  const idle: Worker[] = [];
  const alive = new Set<Worker>();
  const jobs = { busy: 0, waiting: 0 };
  let isClosed = false;

  const holderOf = (id: string): Holder => ({
    ...organizationHolder(id),
    ...(maxPerOrganization !== undefined && { max: maxPerOrganization }),
  });

  function start(): Worker {
    const worker = startWorker(options);
    alive.add(worker);
    worker.process.once('exit', () => {
      alive.delete(worker);
      const at = idle.indexOf(worker);
      if (at >= 0) idle.splice(at, 1);
    });
    return worker;
  }

  function startSpare(): void {
    if (!options.keepsSpare || isClosed || idle.length > 0 || alive.size >= maxProcesses + reserve) return;
    const worker = start();
    setKeepsParentAlive(worker.process, false);
    idle.push(worker);
  }

  async function returnToPool(worker: Worker): Promise<void> {
    const residentBytes = await readResidentBytes(worker.process.pid);
    if (!alive.has(worker) || worker.killReason !== undefined) return;
    const isWornOut = worker.jobs >= maxJobsPerProcess || residentBytes > MAX_KEPT_PART * maxResidentBytes;
    if (isWornOut || idle.length >= maxProcesses + reserve) {
      worker.input.end();
      startSpare();
    } else {
      setKeepsParentAlive(worker.process, false);
      idle.push(worker);
    }
  }

  startSpare();

  return {
    async run(organizationId, job, signal) {
      jobs.waiting += 1;
      const release = await slots
        .acquire({ holders: [holderOf(organizationId)], ...(signal && { signal }) })
        .finally(() => {
          jobs.waiting -= 1;
        });
      jobs.busy += 1;
      const worker = idle.pop() ?? start();
      startSpare();
      worker.jobs += 1;
      setKeepsParentAlive(worker.process, true);
      const stopEnforcing = enforceMemoryLimit(worker, maxResidentBytes);
      try {
        const result = await job(worker);
        await returnToPool(worker);
        return result;
      } catch (error) {
        worker.kill('its job failed');
        throw error;
      } finally {
        stopEnforcing();
        jobs.busy -= 1;
        release();
      }
    },
    usage: () => ({ ...jobs, idle: idle.length }),
    async close() {
      isClosed = true;
      const ended = [...alive].map(({ process }) => once(process, 'exit'));
      for (const worker of alive) {
        // Otherwise a program that waits for nothing else would end before this promise is settled.
        setKeepsParentAlive(worker.process, true);
        worker.kill('the pool was closed');
      }
      await Promise.all(ended);
    },
  };
}

/**
 * A child loads compiled modules if this process does (`NODE_COMPILE_CACHE`), as in tests: that halves the processor time of its start.
 * Leave it unset in production: a child that strangers' mail took over could change what other processes load.
 */
function shareCompiledModules(): { NODE_COMPILE_CACHE?: string } {
  // The folder of this version of Node, in the one that the variable names.
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}

function startWorker({ entry, nodeOptions }: ChildPoolOptions): Worker {
  const child = spawn(process.execPath, [...nodeOptions, entry], {
    // What Node prints when it crashes is text, and may quote the input: it must not reach the log of the process.
    stdio: ['pipe', 'pipe', 'pipe'],
    // The child reads untrusted input, so its environment holds no secrets. One malloc arena keeps its memory small.
    env: { NODE_ENV: 'production', MALLOC_ARENA_MAX: '1', ...shareCompiledModules() },
  });
  if (child.pid !== undefined) yieldCpuOfChild(child.pid);
  let killReason: string | undefined;
  // These errors need no handling: the job sees the end of `output`.
  child.stdin.on('error', () => {});
  child.stdout.on('error', () => {});
  child.on('error', () => {});
  child.stderr.on('error', () => {});
  child.stderr.setEncoding('latin1').on('data', (text: string) => {
    if (/heap out of memory/.test(text)) killReason ??= 'it ran out of memory';
  });
  return {
    process: child,
    jobs: 0,
    input: child.stdin,
    output: child.stdout,
    kill(reason) {
      killReason ??= reason;
      child.kill('SIGKILL');
    },
    get killReason() {
      return killReason;
    },
    usedCpuMs: () => readUsedCpuMs(child.pid),
  };
}

/** An idle child must not keep its parent alive. */
function setKeepsParentAlive(child: ChildProcess, keeps: boolean): void {
  for (const part of [child, child.stdin, child.stdout, child.stderr] as unknown as {
    ref(): void;
    unref(): void;
  }[]) {
    if (keeps) part.ref();
    else part.unref();
  }
}

function enforceMemoryLimit({ process: child, kill }: Worker, maxResidentBytes: number): () => void {
  const timer = setInterval(() => {
    void readResidentBytes(child.pid).then((bytes) => {
      if (bytes > maxResidentBytes) kill(`it used more than ${Math.round(maxResidentBytes / 1_048_576)} MiB`);
    });
  }, MEMORY_CHECK_INTERVAL_MS);
  return () => clearInterval(timer);
}

/** Returns 0 if the process has ended. */
async function readResidentBytes(pid: number | undefined): Promise<number> {
  if (pid === undefined) return 0;
  try {
    if (process.platform === 'linux') {
      const status = await readFile(`/proc/${pid}/status`, 'latin1');
      return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
    }
    const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)]);
    return Number(stdout.trim()) * 1024;
  } catch {
    return 0;
  }
}

/** Linux counts in hundredths of a second (`USER_HZ`). */
const MS_PER_TICK = 10;

async function readUsedCpuMs(pid: number | undefined): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => undefined);
  // The name of the program, in parentheses, may contain spaces. `utime` and `stime` are the 14th and 15th field.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields && (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}
