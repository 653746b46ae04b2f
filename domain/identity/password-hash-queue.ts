import {
  createFairShare,
  type Holder,
  networkHolder,
  type Release,
} from '../../platform/concurrency/fair-share.ts';
import { AppError } from '../../platform/errors.ts';

/** Each computation takes 64 MiB and a thread of libuv's pool, which files and DNS also need. */
export const MAX_CONCURRENT_HASHES = 2;
/** Of one network. With two, someone who guesses passwords would occupy both processors of a small machine. */
export const MAX_CONCURRENT_HASHES_PER_NETWORK = 1;
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
  const slots = createFairShare({ name: 'password hashes', capacity: MAX_CONCURRENT_HASHES });
  /** Number of waiting computations by network. */
  const waiting = new Map<string, number>();

  function countWaiting(network: string, change: 1 | -1): void {
    const total = (waiting.get(network) ?? 0) + change;
    if (total > 0) waiting.set(network, total);
    else waiting.delete(network);
  }

  async function waitForTurn(holder: Holder): Promise<Release> {
    const isFull =
      slots.usage().waiting >= MAX_WAITING_HASHES ||
      (waiting.get(holder.id) ?? 0) >= MAX_WAITING_HASHES_PER_NETWORK;
    if (isFull && holder !== OPERATOR) throw queueFull();
    countWaiting(holder.id, 1);
    return slots.acquire({ holders: [holder] }).finally(() => countWaiting(holder.id, -1));
  }

  return {
    async run(ip, work) {
      const holder =
        ip === null ? OPERATOR : { ...networkHolder(ip), max: MAX_CONCURRENT_HASHES_PER_NETWORK };
      const release = slots.tryAcquire({ holders: [holder] }) ?? (await waitForTurn(holder));
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}

/** A program of the operator, which has no address. */
const OPERATOR: Holder = { kind: 'network', id: '' };

const RETRY_AFTER_SECONDS = 2;

function queueFull(): AppError {
  return new AppError('rate_limited', {
    detail: 'Too many passwords are being checked at the same time.',
    fix: `Wait ${RETRY_AFTER_SECONDS} s (see Retry-After), and send one request at a time.`,
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}
