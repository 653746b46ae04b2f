import { setTimeout as delay } from 'node:timers/promises';
import type { MultipartUploads, UploadedPart } from '../../platform/multipart-uploads.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';

export interface ArchiveStorage extends Pick<Storage, 'getRange' | 'sizeOf'> {
  multipartUploads: MultipartUploads;
}

/** How long an export waits for storage before it fails and starts again. */
const MAX_OUTAGE_MS = 15 * 60_000;
const RETRY_DELAY_MS = 5_000;

/**
 * Repeats calls for some minutes while storage is unavailable, because a failed export starts again from the beginning.
 *
 * @param options.signal ends the repetitions, with its reason.
 * @param options.onWait before each further attempt.
 */
export function retryWhileUnavailable(
  { getRange, multipartUploads }: ArchiveStorage,
  {
    signal,
    onWait,
    retryDelayMs = RETRY_DELAY_MS,
  }: { signal: AbortSignal; onWait: () => void; retryDelayMs?: number | undefined },
): Pick<ArchiveStorage, 'getRange'> & Pick<MultipartUploads, 'uploadPart' | 'complete'> {
  const { uploadPart, complete } = multipartUploads;

  async function repeat<T>(call: () => Promise<T>): Promise<T> {
    const endsAt = Date.now() + MAX_OUTAGE_MS;
    for (;;) {
      try {
        return await call();
      } catch (error) {
        const isOutage = error instanceof StorageError && error.failure === 'unavailable';
        if (!isOutage || Date.now() > endsAt) throw error;
        onWait();
        await delay(retryDelayMs, undefined, { signal }).catch(() => {});
        signal.throwIfAborted();
      }
    }
  }

  return {
    getRange: (...call) => repeat(() => getRange(...call)),
    uploadPart: (...call) => repeat(() => uploadPart(...call)),
    complete: (...call) => repeat(() => complete(...call)),
  };
}

/**
 * Uploads chunks in parts of equal size, as some servers require. One part is uploaded while the next one is filled.
 * The two buffers are reused, because the garbage collector would free new ones too late.
 *
 * @throws the first error of the chunks or of an upload, once no upload is pending.
 */
export async function uploadInParts(
  chunks: AsyncIterable<Buffer>,
  partBytes: number,
  upload: (number: number, bytes: Buffer) => Promise<UploadedPart>,
): Promise<UploadedPart[]> {
  const parts: UploadedPart[] = [];
  let [part, spare] = [Buffer.allocUnsafeSlow(partBytes), Buffer.allocUnsafeSlow(partBytes)];
  let filled = 0;
  let pending: Promise<void> = Promise.resolve();

  async function send(): Promise<void> {
    await pending;
    const bytes = part.subarray(0, filled);
    pending = upload(parts.length + 1, bytes).then((uploaded) => {
      parts.push(uploaded);
    });
    // The next call awaits the upload and gets its error.
    pending.catch(() => {});
    [part, spare] = [spare, part];
    filled = 0;
  }

  try {
    for await (const chunk of chunks)
      for (let start = 0; start < chunk.length; ) {
        const copied = chunk.copy(part, filled, start);
        start += copied;
        filled += copied;
        if (filled === partBytes) await send();
      }
    if (filled > 0) await send();
    await pending;
    return parts;
  } finally {
    await pending.catch(() => {});
  }
}
