import { LRUCache } from 'lru-cache';

/** Decides when deliveries that found no free slot try again. */
export interface RetryPacing {
  /** @returns milliseconds from now. */
  nextDelayMs(endpointId: string, pace: Pace): number;
}

export interface Pace {
  minDelayMs: number;
  /** Between two tries at one endpoint. */
  intervalMs: number;
}

export interface RetryPacingOptions {
  maxDelayMs: number;
  /** Milliseconds. */
  now: () => number;
}

const MAX_ENDPOINTS = 10_000;

/**
 * Spreads the retries of one endpoint over time: regardless of the number of waiting deliveries, an endpoint causes a
 * bounded number of tries per second. The state is in memory and per process, and a restart loses it: it affects load, not
 * correctness.
 */
export function createRetryPacing({ maxDelayMs, now }: RetryPacingOptions): RetryPacing {
  const lastRetries = new LRUCache<string, number>({ max: MAX_ENDPOINTS });
  return {
    nextDelayMs(endpointId, { minDelayMs, intervalMs }) {
      const current = now();
      const earliest = current + minDelayMs;
      const retryAt = Math.max(earliest, (lastRetries.get(endpointId) ?? 0) + intervalMs);
      // The queue is full up to the maximum delay: share a time with deliveries that are already scheduled.
      if (retryAt > current + maxDelayMs)
        return Math.round(minDelayMs + Math.random() * (maxDelayMs - minDelayMs));
      lastRetries.set(endpointId, retryAt);
      return retryAt - current;
    },
  };
}
