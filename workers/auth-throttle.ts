import { LRUCache } from 'lru-cache';

/** Window in which the failed logins of an address are counted. */
const WINDOW_MS = 15 * 60_000;
const MAX_FAILURES = 10;
/** At this size the oldest address is evicted. */
const MAX_TRACKED_ADDRESSES = 10_000;

/** Limits password guessing per client address. State is in memory, so each process allows ten attempts. */
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
