import { LRUCache } from 'lru-cache';
import { networkOf } from '../platform/network.ts';

/** Window in which the failed logins of a network are counted. */
const WINDOW_MS = 15 * 60_000;
const MAX_FAILURES = 10;
/** At this size the oldest network is evicted. */
const MAX_TRACKED_NETWORKS = 10_000;

/**
 * Limits password guessing per client network: an IPv4 address, or an IPv6 /64. State is in memory, so each process
 * allows ten failures.
 */
export interface AuthThrottle {
  /**
   * Starts a login attempt. Attempts in progress count like failures, so that concurrent ones do not exceed the limit.
   *
   * @returns a function that ends this attempt; `exhausted` if the network has used up its attempts, or `busy` if those in
   *   progress would use them up: all clients of an office log in again after an outage.
   */
  begin(address: string): ((outcome: 'failed' | 'other') => void) | 'exhausted' | 'busy';
}

interface Attempts {
  failed: number;
  since: number;
  inProgress: number;
}

export function createAuthThrottle(now: () => number = Date.now): AuthThrottle {
  const networks = new LRUCache<string, Attempts>({ max: MAX_TRACKED_NETWORKS });

  function current(network: string): Attempts {
    const known = networks.get(network);
    if (known && now() - known.since <= WINDOW_MS) return known;
    const attempts = { failed: 0, since: now(), inProgress: known?.inProgress ?? 0 };
    networks.set(network, attempts);
    return attempts;
  }

  return {
    begin(address) {
      const network = networkOf(address);
      const attempts = current(network);
      if (attempts.failed >= MAX_FAILURES) return 'exhausted';
      if (attempts.failed + attempts.inProgress >= MAX_FAILURES) return 'busy';
      attempts.inProgress += 1;
      return (outcome) => {
        const latest = current(network);
        latest.inProgress = Math.max(0, latest.inProgress - 1);
        if (outcome === 'failed') latest.failed += 1;
      };
    },
  };
}
