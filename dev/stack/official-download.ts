import { spawnSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type { Log } from './child-process.ts';

const OFFICIAL = 'https://temporal.download';
/** If the download is unreachable, the next source must be tried within seconds. */
const ANSWER_TIMEOUT_MS = 5_000;
const DOWNLOAD_TIMEOUT_MS = 300_000;
const PROGRESS_STEP = 20;

interface ArchiveInfo {
  archiveUrl: string;
  fileToExtract: string;
}

export interface OfficialDownload {
  artifact: 'cli' | 'temporal-test-server';
  /** Destination of the program. */
  folder: string;
  log: Log;
  signal?: AbortSignal | undefined;
  /** Default: Temporal's own. */
  origin?: string;
}

/**
 * Downloads a program the way `@temporalio/testing` does: Temporal's download service names an archive for this system
 * and the file inside it.
 *
 * @returns the path of the program in `folder`.
 */
export async function downloadOfficial(options: OfficialDownload): Promise<string> {
  const { folder } = options;
  const info = await askForArchive(options);
  const archive = join(folder, info.archiveUrl.endsWith('.zip') ? 'archive.zip' : 'archive.tar.gz');
  await save(info.archiveUrl, archive, options);
  const unpacked = spawnSync('tar', ['-xf', archive, '-C', folder, info.fileToExtract], { encoding: 'utf8' });
  if (unpacked.status !== 0)
    throw new Error(`tar could not unpack the archive: ${unpacked.error?.message ?? unpacked.stderr.trim()}`);
  return join(folder, info.fileToExtract);
}

async function askForArchive({
  artifact,
  origin = OFFICIAL,
  signal,
}: OfficialDownload): Promise<ArchiveInfo> {
  const url = new URL(`/${artifact}/default`, origin);
  url.searchParams.set('platform', process.platform === 'win32' ? 'windows' : process.platform);
  url.searchParams.set('arch', process.arch === 'x64' ? 'amd64' : process.arch);
  const answer = await reach(url, ANSWER_TIMEOUT_MS, signal);
  const info = (await answer.json()) as Partial<ArchiveInfo>;
  if (typeof info.archiveUrl !== 'string' || !/^[\w./-]+$/.test(info.fileToExtract ?? ''))
    throw new Error(`${url.host} returned a response this version does not understand`);
  return info as ArchiveInfo;
}

async function save(url: string, file: string, { log, signal }: OfficialDownload): Promise<void> {
  const answer = await reach(new URL(url), DOWNLOAD_TIMEOUT_MS, signal);
  const totalBytes = Number(answer.headers.get('content-length') ?? 0);
  let receivedBytes = 0;
  let nextPercent = PROGRESS_STEP;
  const progress = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      receivedBytes += chunk.byteLength;
      const percent = totalBytes > 0 ? (receivedBytes / totalBytes) * 100 : 0;
      if (percent >= nextPercent) {
        log(`  ${Math.floor(percent)} % of ${Math.round(totalBytes / 1e6)} MB`);
        nextPercent += PROGRESS_STEP;
      }
      done(null, chunk);
    },
  });
  await pipeline(Readable.fromWeb(answer.body as ReadableStream), progress, createWriteStream(file));
}

async function reach(url: URL, timeoutMs: number, stop: AbortSignal | undefined): Promise<Response> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = stop ? AbortSignal.any([stop, timeout]) : timeout;
  const answer = await fetch(url, { signal }).catch((error: unknown) => {
    throw new Error(`${url.host} cannot be reached`, { cause: error });
  });
  if (!answer.ok || !answer.body) throw new Error(`${url.host} returned ${answer.status}`);
  return answer;
}
