import { LRUCache } from 'lru-cache';

/** Failed log-ins of an address are counted for so long. */
const WINDOW_MS = 15 * 60_000;
const MAX_FAILURES = 10;
/** Older ones are forgotten first. */
const MAX_TRACKED_ADDRESSES = 10_000;

/** Slows down who guesses passwords. In memory: a process more gives a guesser ten tries more. */
export interface AuthThrottle {
  isAllowed(address: string): boolean;
  recordFailure(address: string): void;
}

export function createAuthThrottle(now: () => number = Date.now): AuthThrottle {
  const failures = new LRUCache<string, { count: number; since: number }>({ max: MAX_TRACKED_ADDRESSES });
  const current = (address: string) => {
    const entry = failures.peek(address);
    return entry && now() - entry.since <= WINDOW_MS ? entry : undefined;
  };
  return {
    isAllowed: (address) => (current(address)?.count ?? 0) < MAX_FAILURES,
    recordFailure(address) {
      const { count, since } = current(address) ?? { count: 0, since: now() };
      failures.set(address, { count: count + 1, since });
    },
  };
}
