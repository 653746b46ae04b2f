import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Storage } from '../../platform/storage.ts';

/** A received mail as it came over the wire, to be read by several. */
export interface RawMail {
  sizeBytes: number;
  open(): Promise<Readable>;
}

/** A mail of this size or less is read from storage once, and kept while it is taken in. */
export const MAX_BUFFERED_BYTES = 1024 * 1024;

export async function openRawMail(
  storage: Pick<Storage, 'getStream'>,
  { rawKey, sizeBytes }: { rawKey: string; sizeBytes: number },
): Promise<RawMail> {
  if (sizeBytes > MAX_BUFFERED_BYTES) return { sizeBytes, open: () => storage.getStream(rawKey) };
  const bytes = await buffer(await storage.getStream(rawKey));
  return { sizeBytes: bytes.length, open: async () => Readable.from([bytes]) };
}
