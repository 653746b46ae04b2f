import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { mapConcurrently } from '../../platform/concurrency/map-concurrently.ts';
import { InstallationError } from '../../platform/installation/installation-error.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';

export interface CopiedObjects {
  copied: number;
  /** Already there, in the same size. Objects never change under their key. */
  unchanged: number;
}

const MAX_CONCURRENT_COPIES = 8;

/** Copies the bucket's objects that the folder lacks. Nothing is deleted from the folder. */
export async function saveObjects(
  storage: Pick<Storage, 'listPage' | 'getStream' | 'sizeOf'>,
  folder: string,
): Promise<CopiedObjects> {
  await mkdir(folder, { recursive: true });
  const result: CopiedObjects = { copied: 0, unchanged: 0 };
  for (let after: string | undefined; ; ) {
    const page = await storage.listPage('', after);
    await mapConcurrently(page.objects, MAX_CONCURRENT_COPIES, async ({ key }) => {
      const file = fileOf(folder, key);
      const size = await sizeOfFile(file);
      if (size !== undefined && size === (await storage.sizeOf(key))) result.unchanged += 1;
      else if (await saveObject(storage, key, file)) result.copied += 1;
    });
    after = page.objects.at(-1)?.key;
    if (page.isLast || after === undefined) return result;
  }
}

/** Returns false if the object was deleted after it was listed. */
async function saveObject(storage: Pick<Storage, 'getStream'>, key: string, file: string): Promise<boolean> {
  await mkdir(dirname(file), { recursive: true });
  try {
    // An interrupted copy must not look like a complete one.
    await pipeline(await storage.getStream(key), createWriteStream(`${file}.part`));
  } catch (error) {
    if (error instanceof StorageError && error.failure === 'missing') return false;
    throw error;
  }
  await rename(`${file}.part`, file);
  return true;
}

/**
 * Copies the folder's objects that the bucket lacks. Nothing is deleted from the bucket. Can be repeated after an
 * interruption.
 *
 * @param onMissing called, once, before the first object is copied.
 */
export async function restoreObjects(
  storage: Pick<Storage, 'putStream' | 'sizeOf' | 'ensureBucket'>,
  folder: string,
  onMissing: () => Promise<void>,
): Promise<CopiedObjects> {
  const files = await listFiles(folder);
  await storage.ensureBucket();
  const result: CopiedObjects = { copied: 0, unchanged: 0 };
  let announced: Promise<void> | undefined;
  await mapConcurrently(files, MAX_CONCURRENT_COPIES, async (file) => {
    const key = relative(folder, file).split(sep).join('/');
    if ((await storage.sizeOf(key)) === (await sizeOfFile(file))) {
      result.unchanged += 1;
      return;
    }
    announced ??= onMissing();
    await announced;
    await storage.putStream(key, createReadStream(file), { contentType: contentTypeOf(key) });
    result.copied += 1;
  });
  return result;
}

/**
 * Checks, before a restore begins, that the folder has the objects of the backup: without them the restored messages would
 * have no files. It may have more, of other backups.
 *
 * @param expected null if the backup does not say.
 * @throws InstallationError if it cannot be read, or lacks some.
 */
export async function requireObjects(folder: string, expected: number | null): Promise<void> {
  const { length } = await listFiles(folder);
  if (length < (expected ?? 0))
    throw new InstallationError(
      `${folder} has ${length} of the ${expected} objects of the backup. Name the complete folder with --objects; --no-objects leaves the bucket as it is.`,
    );
}

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: Error) => {
    throw new InstallationError(
      `The folder of objects cannot be read: ${error.message}. Name it with --objects; --no-objects leaves the bucket as it is.`,
    );
  });
  return entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.part'))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Downloads set their own content type, so it matters only to people who browse the bucket. */
const contentTypeOf = (key: string): string =>
  key.endsWith('.eml') ? 'message/rfc822' : 'application/octet-stream';

/** @throws InstallationError for a key that would leave the folder. */
function fileOf(folder: string, key: string): string {
  const isSafe = key.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isSafe) throw new InstallationError(`The bucket has an object that no folder can hold: ${key}`);
  return join(folder, ...key.split('/'));
}

async function sizeOfFile(file: string): Promise<number | undefined> {
  return stat(file).then(
    ({ size }) => size,
    () => undefined,
  );
}
