import { spawnSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type { Log } from './child-process.ts';

const OFFICIAL = 'https://temporal.download';
/** Where the download cannot be reached the next source has to get its turn in seconds. */
const ANSWER_TIMEOUT_MS = 5_000;
const DOWNLOAD_TIMEOUT_MS = 300_000;
const PROGRESS_STEP = 20;

interface ArchiveInfo {
  archiveUrl: string;
  fileToExtract: string;
}

/**
 * Fetches a program the way `@temporalio/testing` does: Temporal's download service names an archive for this system
 * and the file inside it.
 *
 * @param artifact `cli` or `temporal-test-server`.
 * @returns the path of the program in `folder`.
 */
export async function downloadOfficial(
  artifact: string,
  folder: string,
  log: Log,
  origin = OFFICIAL,
): Promise<string> {
  const info = await askForArchive(artifact, origin);
  const archive = join(folder, info.archiveUrl.endsWith('.zip') ? 'archive.zip' : 'archive.tar.gz');
  await save(info.archiveUrl, archive, log);
  const unpacked = spawnSync('tar', ['-xf', archive, '-C', folder, info.fileToExtract], { encoding: 'utf8' });
  if (unpacked.status !== 0)
    throw new Error(`tar could not unpack it: ${unpacked.error?.message ?? unpacked.stderr.trim()}`);
  return join(folder, info.fileToExtract);
}

async function askForArchive(artifact: string, origin: string): Promise<ArchiveInfo> {
  const url = new URL(`/${artifact}/default`, origin);
  url.searchParams.set('platform', process.platform === 'win32' ? 'windows' : process.platform);
  url.searchParams.set('arch', process.arch === 'x64' ? 'amd64' : process.arch);
  const answer = await reach(url, AbortSignal.timeout(ANSWER_TIMEOUT_MS));
  const info = (await answer.json()) as Partial<ArchiveInfo>;
  if (typeof info.archiveUrl !== 'string' || !/^[\w./-]+$/.test(info.fileToExtract ?? ''))
    throw new Error(`${url.host} gave an answer this version does not understand`);
  return info as ArchiveInfo;
}

async function save(url: string, file: string, log: Log): Promise<void> {
  const answer = await reach(new URL(url), AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS));
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

async function reach(url: URL, signal: AbortSignal): Promise<Response> {
  const answer = await fetch(url, { signal }).catch((error: unknown) => {
    throw new Error(`${url.host} cannot be reached`, { cause: error });
  });
  if (!answer.ok || !answer.body) throw new Error(`${url.host} answered ${answer.status}`);
  return answer;
}
