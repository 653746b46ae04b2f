import { LRUCache } from 'lru-cache';
import { networkOf } from '../../platform/network.ts';

/** Requests that a network may fail to prove, and how many of them are forgotten each second. */
const MAX_UNPROVEN = 200;
const FORGOTTEN_PER_SECOND = 20;
/** A network from which a proven request came is not limited for so long. */
const TRUST_MS = 24 * 3_600_000;
/** At this size the network that was idle longest is evicted. */
const MAX_TRACKED_NETWORKS = 10_000;

/**
 * Limits requests that have to prove their origin by a signature over the body, which therefore has to be read: those that
 * fail to. Providers post all their events from few addresses, in bursts, and lose events that are refused for long, so
 * their own requests never count, and a network that has proven one is not refused at all. State is in memory, by client
 * network: an IPv4 address, or an IPv6 /64.
 */
export interface SignedCallers {
  /**
   * Begins a request. One in progress counts like one that failed.
   *
   * @returns null if the network has failed too often; otherwise a function that ends the request. Further calls of it do
   * nothing.
   */
  begin(address: string): ((outcome: 'proven' | 'refused' | 'unknown') => void) | null;
}

interface Caller {
  failed: number;
  /** When `failed` was computed. */
  countedAt: number;
  inProgress: number;
  trustedUntil: number;
}

export function createSignedCallers(now: () => number = Date.now): SignedCallers {
  const callers = new LRUCache<string, Caller>({ max: MAX_TRACKED_NETWORKS });

  function find(network: string): Caller {
    const known = callers.get(network);
    const caller = known ?? { failed: 0, countedAt: now(), inProgress: 0, trustedUntil: 0 };
    if (!known) callers.set(network, caller);
    const forgotten = ((now() - caller.countedAt) / 1_000) * FORGOTTEN_PER_SECOND;
    caller.failed = Math.max(0, caller.failed - forgotten);
    caller.countedAt = now();
    return caller;
  }

  return {
    begin(address) {
      const caller = find(networkOf(address));
      if (now() >= caller.trustedUntil && caller.failed + caller.inProgress >= MAX_UNPROVEN) return null;
      caller.inProgress += 1;
      let isOver = false;
      return (outcome) => {
        if (isOver) return;
        isOver = true;
        caller.inProgress -= 1;
        if (outcome === 'proven') caller.trustedUntil = now() + TRUST_MS;
        if (outcome === 'refused') caller.failed += 1;
      };
    },
  };
}
