import type { Readable } from 'node:stream';

/** The least that a client must send while the listener waits for its message. */
export interface DataRate {
  windowMs: number;
  /** In each window. One byte now and then must not keep a connection open forever. */
  minBytes: number;
  /** In each window after the first MiB: such a message holds one of few slots. */
  minLargeBytes: number;
}

/**
 * RFC 5321 section 4.5.3.2.5 lets a client pause for minutes between data blocks, but a real one has the whole message
 * before it connects. About 0.5 KiB/s, and 17 KiB/s with a slot: a message of the maximum size holds it for 36 minutes
 * at most.
 */
export const DEFAULT_DATA_RATE: DataRate = { windowMs: 30_000, minBytes: 16_384, minLargeBytes: 524_288 };

const CHECKS_PER_WINDOW = 10;

/**
 * Calls `onTooSlow` once the client has sent too little for a whole window, until `data` ends or is destroyed. Counts
 * only the time in which the listener waits for the client.
 */
export function watchDataRate(
  data: Readable,
  { windowMs, minBytes, minLargeBytes }: DataRate,
  { isClientWaiting, isLarge, onTooSlow }: WatchedMessage,
): void {
  let receivedBytes = 0;
  let checks = 0;
  let requiredBytes = minBytes;
  const timer = setInterval(() => {
    if (isClientWaiting()) return;
    checks += 1;
    if (checks < CHECKS_PER_WINDOW) return;
    if (receivedBytes < requiredBytes) {
      stop();
      onTooSlow();
    }
    checks = 0;
    receivedBytes = 0;
    // A message that becomes large within a window has the rest of it to speed up.
    requiredBytes = isLarge() ? minLargeBytes : minBytes;
  }, windowMs / CHECKS_PER_WINDOW);
  const stop = () => clearInterval(timer);
  data.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length;
  });
  data.once('end', stop);
  data.once('close', stop);
}

interface WatchedMessage {
  /** Whether the listener itself delays the message: it has no slot yet, or storage is slow. */
  isClientWaiting(): boolean;
  isLarge(): boolean;
  onTooSlow(): void;
}
