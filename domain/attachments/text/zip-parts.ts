import { Unzip, UnzipInflate } from 'fflate';
import { UnreadableFileError } from './unreadable-file.ts';

/** Of the parts together: ordinary documents of 25 MiB are mostly images, which are not inflated. */
const MAX_INFLATED_BYTES = 64 * 1024 * 1024;
const MAX_RATIO = 250;
/** Smaller parts may have any ratio. */
const MIN_RATIO_BYTES = 4 * 1024 * 1024;
const MAX_ENTRIES = 10_000;
/** Deflate expands up to 1,032 times, so that one push yields at most 8 MiB. */
const PUSH_BYTES = 8 * 1024;

const BOMB = 'Its compressed parts expand to more than a document needs (a zip bomb).';

/**
 * Inflates the wanted parts of a zip file. The sizes that the file declares are ignored: the inflated bytes are counted,
 * and nothing else is inflated.
 *
 * @throws UnreadableFileError if the parts expand too much, or the archive is damaged.
 */
export function readZipParts(archive: Uint8Array, isWanted: (name: string) => boolean): Map<string, Buffer> {
  const parts = new Map<string, Buffer[]>();
  let inflatedBytes = 0;
  let pushedBytes = 0;
  let entries = 0;
  const unzip = new Unzip((entry) => {
    entries += 1;
    if (entries > MAX_ENTRIES) throw new UnreadableFileError(`It has more than ${MAX_ENTRIES} parts.`);
    const chunks: Buffer[] = [];
    let partBytes = 0;
    const startedAt = pushedBytes;
    if (!isWanted(entry.name) || parts.has(entry.name)) return;
    parts.set(entry.name, chunks);
    const receive: typeof entry.ondata = (error, chunk) => {
      // The library passes on what this function throws.
      if (error) throw error;
      inflatedBytes += chunk.length;
      partBytes += chunk.length;
      const readBytes = pushedBytes - startedAt + PUSH_BYTES;
      const isBomb = partBytes > MIN_RATIO_BYTES && partBytes > MAX_RATIO * readBytes;
      if (isBomb || inflatedBytes > MAX_INFLATED_BYTES) throw new UnreadableFileError(BOMB);
      chunks.push(Buffer.from(chunk));
    };
    entry.ondata = receive;
    entry.start();
  });
  unzip.register(UnzipInflate);
  try {
    for (; pushedBytes < archive.length; pushedBytes += PUSH_BYTES)
      unzip.push(
        archive.subarray(pushedBytes, pushedBytes + PUSH_BYTES),
        pushedBytes + PUSH_BYTES >= archive.length,
      );
  } catch (error) {
    if (error instanceof UnreadableFileError) throw error;
    throw new UnreadableFileError('The archive that holds its parts is damaged or encrypted.');
  }
  return new Map([...parts].map(([name, chunks]) => [name, Buffer.concat(chunks)]));
}
