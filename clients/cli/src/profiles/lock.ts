import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError, EXIT } from '../cli-error.ts';

/** Longer than a refresh of a token takes. */
const STALE_MS = 30_000;
const WAIT_MS = 40_000;
const POLL_MS = 50;

const held = new Set<Promise<unknown>>();

/** Resolves when this process holds no lock: an interrupted refresh would lose the token that the service has just given. */
export const locksReleased = (): Promise<unknown> => Promise.allSettled(held);

/** Runs a function while no other process runs one under the same lock file. The lock of a process that died is taken over. */
export async function withLock<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  const mark = `${process.pid} ${hostname()} ${randomUUID()}`;
  await acquire(path, mark);
  const running = work().finally(async () => {
    if ((await readMark(path)) === mark) await rm(path, { force: true });
  });
  held.add(running);
  return running.finally(() => held.delete(running));
}

async function acquire(path: string, mark: string): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    try {
      return await writeFile(path, mark, { flag: 'wx', mode: 0o600 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    await removeAbandoned(path);
    if (Date.now() > deadline)
      throw new CliError(`Another command holds ${path}.`, {
        exitCode: EXIT.api,
        code: 'profile_locked',
        fix: 'Wait until it has ended. If none runs, remove the file.',
      });
    await sleep(POLL_MS);
  }
}

async function removeAbandoned(path: string): Promise<void> {
  const seen = await readMark(path);
  const { mtimeMs } = (await stat(path).catch(() => undefined)) ?? {};
  if (seen === undefined || mtimeMs === undefined) return;
  if (!hasDied(seen) && Date.now() - mtimeMs < STALE_MS) return;
  const aside = `${path}.${randomUUID()}`;
  // Two may find the same abandoned lock. If the second one has moved the new lock of the first aside, it puts it back.
  const moved = await rename(path, aside).then(
    () => true,
    () => false,
  );
  if (!moved) return;
  if ((await readMark(aside)) === seen) await rm(aside, { force: true });
  else await rename(aside, path).catch(() => undefined);
}

function hasDied(mark: string): boolean {
  const [pid, host] = mark.split(' ');
  if (host !== hostname() || !Number(pid)) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

const readMark = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined);
