import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';

/**
 * Length-prefixed frames on a byte stream. Node's IPC and JSON-lines packages would encode a file's bytes as text; these
 * frames carry them unchanged and with backpressure.
 */
export interface Frame {
  type: string;
  payload: Buffer;
}

/** The type, and the length of the payload (32 bits, big-endian). */
const HEADER_BYTES = 5;

/**
 * Writes a frame, and waits while the stream is full.
 *
 * @param type one ASCII letter.
 * @throws Error if the stream is closed.
 */
export async function writeFrame(stream: Writable, type: string, payload?: Uint8Array): Promise<void> {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(type, 'latin1');
  header.writeUInt32BE(payload?.length ?? 0, 1);
  stream.cork();
  let hasCapacity = stream.write(header);
  if (payload && payload.length > 0) hasCapacity = stream.write(payload);
  stream.uncork();
  if (!hasCapacity) await waitForDrain(stream);
}

/** As {@link writeFrame}, to a process that may die meanwhile: then its output ends, which says so. */
export async function sendFrame(stream: Writable, type: string, payload?: Uint8Array): Promise<void> {
  await writeFrame(stream, type, payload).catch(() => undefined);
}

async function waitForDrain(stream: Writable): Promise<void> {
  const done = new AbortController();
  try {
    if (stream.destroyed) throw new Error('The stream is closed');
    const closed = once(stream, 'close', done).then(() => {
      throw new Error('The stream is closed');
    });
    await Promise.race([once(stream, 'drain', done), closed]);
  } finally {
    // A long-lived stream would otherwise accumulate listeners.
    done.abort();
  }
}

/** Reads frames with backpressure. Ends with the stream, even within a frame. */
export async function* readFrames(stream: Readable): AsyncGenerator<Frame, void> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let wanted = HEADER_BYTES;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    pending.push(chunk);
    pendingBytes += chunk.length;
    if (pendingBytes < wanted) continue;
    let bytes = pending.length === 1 ? chunk : Buffer.concat(pending, pendingBytes);
    for (;;) {
      wanted = HEADER_BYTES + (bytes.length >= HEADER_BYTES ? bytes.readUInt32BE(1) : 0);
      if (bytes.length < HEADER_BYTES || bytes.length < wanted) break;
      yield { type: bytes.toString('latin1', 0, 1), payload: bytes.subarray(HEADER_BYTES, wanted) };
      bytes = bytes.subarray(wanted);
    }
    pending = [bytes];
    pendingBytes = bytes.length;
  }
}
