import { createTurnSemaphore } from '../../platform/concurrency/turn-semaphore.ts';
import { AppError } from '../../platform/errors.ts';
import { networkOf } from '../../platform/network.ts';

/** Each computation takes 64 MiB and a thread of libuv's pool, which files and DNS also need. */
export const MAX_CONCURRENT_HASHES = 2;
/** Waiting computations in one process. A computation takes a few tenths of a second. */
export const MAX_WAITING_HASHES = 32;
/** Waiting computations of one network: an IPv4 address or an IPv6 /64. */
export const MAX_WAITING_HASHES_PER_NETWORK = 4;

/**
 * The queue of a process for password hashes. It is bounded as a whole and for each network, so that no network can fill it.
 */
export interface PasswordHashQueue {
  /**
   * @param ip of the client; null for a program of the operator, which waits without a limit.
   * @throws AppError `rate_limited` at once if the queue is full, or the network has used its share.
   */
  run<T>(ip: string | null, work: () => Promise<T>): Promise<T>;
}

export function createPasswordHashQueue(): PasswordHashQueue {
  const slots = createTurnSemaphore(MAX_CONCURRENT_HASHES);
  /** Number of waiting computations by network. */
  const waiting = new Map<string, number>();
  /** Computations that run or wait. */
  let entered = 0;

  function startToWait(network: string, isLimited: boolean): void {
    const ofNetwork = waiting.get(network) ?? 0;
    const isFull =
      entered - MAX_CONCURRENT_HASHES >= MAX_WAITING_HASHES || ofNetwork >= MAX_WAITING_HASHES_PER_NETWORK;
    if (isLimited && isFull) throw queueFull();
    waiting.set(network, ofNetwork + 1);
  }

  function endToWait(network: string): void {
    const left = (waiting.get(network) ?? 1) - 1;
    if (left > 0) waiting.set(network, left);
    else waiting.delete(network);
  }

  return {
    async run(ip, work) {
      const network = ip === null ? '' : networkOf(ip);
      const waits = entered >= MAX_CONCURRENT_HASHES;
      if (waits) startToWait(network, ip !== null);
      entered += 1;
      const release = await slots.acquire({ priority: 0, key: network });
      if (waits) endToWait(network);
      try {
        return await work();
      } finally {
        entered -= 1;
        release();
      }
    },
  };
}

const RETRY_AFTER_SECONDS = 2;

function queueFull(): AppError {
  return new AppError('rate_limited', {
    detail: 'Too many passwords are being checked at the same time.',
    fix: `Wait ${RETRY_AFTER_SECONDS} s (see Retry-After), and send one request at a time.`,
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}
