import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { createSemaphore } from './semaphore.ts';

export interface ChildPoolOptions {
  /** The script a child runs. It serves one job after the other over its standard input and output, and ends with its input. */
  entry: string;
  /** Of Node, before the script. */
  nodeOptions: readonly string[];
  /** How many there are at most; they start when they are needed, and stay. */
  maxProcesses: number;
  /** A child is replaced after so many jobs, and after one that left it at more than half of `maxResidentBytes`. */
  maxJobsPerProcess: number;
  /** A child that holds more is killed. What a limit of the heap does not see, such as buffers, counts too. */
  maxResidentBytes: number;
}

/** A process at work on one job. */
export interface Child {
  readonly input: Writable;
  readonly output: Readable;
  /** SIGKILL; `output` ends. The first reason stays. */
  kill(reason: string): void;
  /** Why it was killed; empty while it was not. */
  readonly killReason: string | undefined;
}

export interface PoolUsage {
  /** Jobs under way. */
  busy: number;
  /** Processes without a job. */
  idle: number;
  /** Jobs in line for a process. */
  waiting: number;
}

/** Processes for work that may never end, or take all memory there is: they can be killed, a function cannot. */
export interface ChildPool {
  /**
   * Gives a job a child of its own, as soon as one is free. One whose job throws, or that died, is not used again.
   *
   * @returns what the job returns.
   */
  run<T>(job: (child: Child) => Promise<T>): Promise<T>;
  usage(): PoolUsage;
  close(): Promise<void>;
}

const MEMORY_CHECK_INTERVAL_MS = 200;

interface Worker extends Child {
  process: ChildProcess;
  jobs: number;
}

export function createChildPool(options: ChildPoolOptions): ChildPool {
  const { maxProcesses: processes, maxJobsPerProcess: jobsPerProcess, maxResidentBytes } = options;
  const slots = createSemaphore(processes);
  const idle: Worker[] = [];
  const alive = new Set<Worker>();
  const jobs = { busy: 0, waiting: 0 };

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

  async function returnToPool(worker: Worker): Promise<void> {
    const residentBytes = await readResidentBytes(worker.process.pid);
    if (!alive.has(worker) || worker.killReason !== undefined) return;
    if (worker.jobs >= jobsPerProcess || residentBytes > maxResidentBytes / 2) worker.input.end();
    else {
      setKeepsParentAlive(worker.process, false);
      idle.push(worker);
    }
  }

  return {
    async run(job) {
      jobs.waiting += 1;
      const release = await slots.acquire();
      jobs.waiting -= 1;
      jobs.busy += 1;
      const worker = idle.pop() ?? start();
      worker.jobs += 1;
      setKeepsParentAlive(worker.process, true);
      const unwatch = enforceMemoryLimit(worker, maxResidentBytes);
      try {
        const result = await job(worker);
        await returnToPool(worker);
        return result;
      } catch (error) {
        worker.kill('its work failed');
        throw error;
      } finally {
        unwatch();
        jobs.busy -= 1;
        release();
      }
    },
    usage: () => ({ ...jobs, idle: idle.length }),
    async close() {
      const ended = [...alive].map(({ process }) => once(process, 'exit'));
      for (const worker of alive) worker.kill('the pool was closed');
      await Promise.all(ended);
    },
  };
}

function startWorker({ entry, nodeOptions }: ChildPoolOptions): Worker {
  const child = spawn(process.execPath, [...nodeOptions, entry], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // It reads what strangers wrote: it gets no secret. Its few threads share their memory.
    env: { NODE_ENV: 'production', MALLOC_ARENA_MAX: '1' },
  });
  let killed: string | undefined;
  // A broken pipe shows as the end of the output.
  child.stdin.on('error', () => {});
  child.stdout.on('error', () => {});
  child.on('error', () => {});
  return {
    process: child,
    jobs: 0,
    input: child.stdin,
    output: child.stdout,
    kill(reason) {
      killed ??= reason;
      child.kill('SIGKILL');
    },
    get killReason() {
      return killed;
    },
  };
}

/** An idle child must not keep its parent from ending. */
function setKeepsParentAlive(child: ChildProcess, keeps: boolean): void {
  for (const part of [child, child.stdin, child.stdout] as unknown as { ref(): void; unref(): void }[]) {
    if (keeps) part.ref();
    else part.unref();
  }
}

function enforceMemoryLimit({ process: child, kill }: Worker, maxResidentBytes: number): () => void {
  const timer = setInterval(() => {
    void readResidentBytes(child.pid).then((bytes) => {
      if (bytes > maxResidentBytes) kill(`it took more than ${Math.round(maxResidentBytes / 1_048_576)} MiB`);
    });
  }, MEMORY_CHECK_INTERVAL_MS);
  return () => clearInterval(timer);
}

/** Resident memory of a process; 0 where it is gone. */
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
