import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Storage } from '../../platform/storage.ts';

/** The raw bytes of a received message, which can be read several times. */
export interface RawMail {
  sizeBytes: number;
  open(): Promise<Readable>;
}

/** Smaller messages are read from storage once and kept in memory during ingestion. */
export const MAX_BUFFERED_BYTES = 1024 * 1024;

export async function openRawMail(
  storage: Pick<Storage, 'getStream'>,
  { rawKey, sizeBytes }: { rawKey: string; sizeBytes: number },
): Promise<RawMail> {
  if (sizeBytes > MAX_BUFFERED_BYTES) return { sizeBytes, open: () => storage.getStream(rawKey) };
  const bytes = await buffer(await storage.getStream(rawKey));
  return { sizeBytes: bytes.length, open: async () => Readable.from([bytes]) };
}
