import { realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Child,
  createChildPool,
  limitTime,
  type PoolUsage,
  type TimeLimit,
} from '../../../platform/child-pool.ts';
import { AppError } from '../../../platform/errors.ts';
import { readFrames, sendFrame } from '../../../platform/frames.ts';
import { FRAME } from './child.ts';
import type { FileName } from './detect-format.ts';
import type { FileText } from './read-file.ts';

/** The text of a file, or of a file whose reading was stopped: another time it may be quick enough. */
export type ReadFile = FileText & { wasStopped?: true };

export type FileReader = ReturnType<typeof createFileReader>;

export interface FileReaderOptions {
  /** The script that runs `runFileReaderChild` on its standard input and output. */
  entry: string;
  /** Kills a process that takes longer for a file, unless the machine was too busy to run it. */
  timeoutMs?: number;
  /** A process that had a smaller share of a processor in that time was kept waiting by others. Default: 0.5. */
  minCpuShare?: number;
  /** How long a file waits for a process. */
  waitMs?: number;
}

const MAX_CONCURRENT_FILES = 2;
const MAX_FILES_PER_ORGANIZATION = 2;
const TIMEOUT_MS = 10_000;
const MIN_CPU_SHARE = 0.5;
/** Then the request fails, and may be repeated. */
const CHECKS = 3;
const WAIT_MS = 20_000;
/** A process that a file has taken over must not see a file of another organization. */
const MAX_JOBS_PER_PROCESS = 1;
const MAX_RESIDENT_BYTES = 512 * 1024 * 1024;
const ROOT = resolve(import.meta.dirname, '../../..');
/** What the process may read: its code, and neither secrets nor the files of others. */
const READABLE = ['domain', 'node_modules', 'package.json', 'platform', 'workers'].flatMap((name) => {
  const path = join(ROOT, name);
  // Node also checks where a symbolic link leads.
  return [...new Set([path, realpathSync(path)])];
});
/** The process cannot write files, start processes or load native code; `denyNetwork` takes the network. */
export const READER_NODE_OPTIONS: readonly string[] = [
  '--max-old-space-size=384',
  '--max-semi-space-size=8',
  '--no-warnings',
  '--permission',
  ...READABLE.map((path) => `--allow-fs-read=${path}`),
];
/** The reason of a crash may arrive after the end of the output. */
const REASON_DELAY_MS = 200;

/** Reads files in child processes, so that a malicious file cannot block the API or exhaust its memory. */
export function createFileReader(options: FileReaderOptions) {
  const { entry, timeoutMs = TIMEOUT_MS, minCpuShare = MIN_CPU_SHARE, waitMs = WAIT_MS } = options;
  const timeLimit = { timeoutMs, minCpuMs: minCpuShare * timeoutMs, checks: CHECKS };
  const pool = createChildPool({
    name: 'file readers',
    entry,
    nodeOptions: READER_NODE_OPTIONS,
    maxProcesses: MAX_CONCURRENT_FILES,
    maxPerOrganization: MAX_FILES_PER_ORGANIZATION,
    maxJobsPerProcess: MAX_JOBS_PER_PROCESS,
    maxResidentBytes: MAX_RESIDENT_BYTES,
  });

  return {
    /**
     * Never throws because of the content. A file that takes too long or too much memory has a failure.
     *
     * @param load called when a process is free, so that waiting files need no memory.
     * @throws AppError `unavailable` if no process gets free in time, or the process dies; errors of `load`.
     */
    async read(organizationId: string, name: FileName, load: () => Promise<Buffer>): Promise<ReadFile> {
      const wait = AbortSignal.timeout(waitMs);
      const job = async (child: Child) => runJob(child, { name, bytes: await load(), timeLimit });
      return pool.run(organizationId, job, wait).catch((error: unknown) => {
        if (error !== wait.reason) throw error;
        throw unavailable('Too many files are being read.');
      });
    },
    usage: (): PoolUsage => pool.usage(),
    close: (): Promise<void> => pool.close(),
  };
}

interface Job {
  name: FileName;
  bytes: Buffer;
  timeLimit: TimeLimit;
}

async function runJob(child: Child, { name, bytes, timeLimit }: Job): Promise<ReadFile> {
  const limit = limitTime(child, timeLimit);
  try {
    await sendFrame(child.input, FRAME.name, Buffer.from(JSON.stringify(name)));
    await sendFrame(child.input, FRAME.source, bytes);
    const { value: frame } = await readFrames(child.output).next();
    if (frame) return JSON.parse(frame.payload.toString()) as FileText;
    await pause(REASON_DELAY_MS);
    const { killReason } = child;
    if (limit.isStarved() || !/took more|memory|MiB/.test(killReason ?? ''))
      throw unavailable('The process that read the file ended.', killReason);
    return stopped(`Reading it was stopped: ${killReason}.`);
  } finally {
    limit.stop();
  }
}

const stopped = (reason: string): ReadFile => ({
  failure: {
    reason,
    fix: 'Download the file with GET /api/v1/attachments/{id}, or ask the sender for a smaller or simpler file.',
  },
  wasStopped: true,
});

const unavailable = (detail: string, cause?: string | undefined): AppError =>
  new AppError('unavailable', {
    detail,
    fix: 'Repeat the request in a minute, or download the file: GET /api/v1/attachments/{id}.',
    ...(cause === undefined ? {} : { cause: new Error(cause) }),
  });
