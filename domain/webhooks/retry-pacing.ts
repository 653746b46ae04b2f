import { LRUCache } from 'lru-cache';

export type RetryPacing = ReturnType<typeof createRetryPacing>;

export interface Pace {
  minDelayMs: number;
  /** Time between two tries while attempts are short. */
  intervalMs: number;
  /**
   * Number of concurrent attempts. With n of them, one ends every 1/n of their duration, so tries at a higher rate
   * would find no slot.
   */
  slots: number;
}

export interface RetryPacingOptions {
  maxDelayMs: number;
  /** Milliseconds. */
  now: () => number;
}

const MAX_KEYS = 10_000;
/** Weight of the latest attempt in the average duration. */
const LATEST_WEIGHT = 0.2;

/**
 * Decides when deliveries that found no free slot try again. A key is an endpoint, or an organization whose share is in
 * use. Regardless of the number of waiting deliveries, a key causes a bounded number of tries per second, and few if
 * its attempts are slow. The state is kept only in the memory of one process, because it affects load, not correctness.
 */
export function createRetryPacing({ maxDelayMs, now }: RetryPacingOptions) {
  const lastRetries = new LRUCache<string, number>({ max: MAX_KEYS });
  const averages = new LRUCache<string, number>({ max: MAX_KEYS });
  /** Start times of the attempts in progress, oldest first. */
  const inProgress = new Map<string, Set<{ startedAt: number }>>();

  function durationMs(key: string): number {
    const [oldest] = inProgress.get(key) ?? [];
    return Math.max(averages.get(key) ?? 0, oldest ? now() - oldest.startedAt : 0);
  }

  function end(key: string, attempt: { startedAt: number }): void {
    const attempts = inProgress.get(key);
    attempts?.delete(attempt);
    if (attempts?.size === 0) inProgress.delete(key);
    const latest = now() - attempt.startedAt;
    const average = averages.get(key) ?? latest;
    averages.set(key, average + LATEST_WEIGHT * (latest - average));
  }

  return {
    /**
     * Call this when an attempt begins. The duration of the attempt sets the pace of the others. @returns a function to
     * call when the attempt ends.
     */
    begin(keys: readonly string[]): () => void {
      const attempt = { startedAt: now() };
      for (const key of keys) inProgress.set(key, (inProgress.get(key) ?? new Set()).add(attempt));
      return () => {
        for (const key of keys) end(key, attempt);
      };
    },

    /** @returns milliseconds from now. */
    nextDelayMs(key: string, { minDelayMs, intervalMs, slots }: Pace): number {
      const current = now();
      const earliest = current + minDelayMs;
      const retryAt = Math.max(
        earliest,
        (lastRetries.get(key) ?? 0) + Math.max(intervalMs, durationMs(key) / slots),
      );
      // The queue is full up to the maximum delay: share a time with deliveries that are already scheduled.
      if (retryAt > current + maxDelayMs)
        return Math.round(minDelayMs + Math.random() * (maxDelayMs - minDelayMs));
      lastRetries.set(key, retryAt);
      return retryAt - current;
    },
  };
}
