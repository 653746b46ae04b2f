import { LRUCache } from 'lru-cache';

/** Decides when deliveries that found no free slot try again. A key is an endpoint, or an organization with its share. */
export interface RetryPacing {
  /** Notes an attempt in progress, from which the pace of the others follows. @returns notes its end. */
  begin(keys: readonly string[]): () => void;
  /** @returns milliseconds from now. */
  nextDelayMs(key: string, pace: Pace): number;
}

export interface Pace {
  minDelayMs: number;
  /** Between two tries, while attempts are short. */
  intervalMs: number;
  /** Attempts at the same time. One of them ends in this part of their duration, so that more tries would find none. */
  slots: number;
}

export interface RetryPacingOptions {
  maxDelayMs: number;
  /** Milliseconds. */
  now: () => number;
}

const MAX_KEYS = 10_000;
/** Of the last attempt, in the average duration. */
const LATEST_WEIGHT = 0.2;

/**
 * Spreads the retries of one key over time: regardless of the number of waiting deliveries, an endpoint causes a
 * bounded number of tries per second, and a slow one few. The state is in memory and per process, and a restart loses it: it affects load, not
 * correctness.
 */
export function createRetryPacing({ maxDelayMs, now }: RetryPacingOptions): RetryPacing {
  const lastRetries = new LRUCache<string, number>({ max: MAX_KEYS });
  const averages = new LRUCache<string, number>({ max: MAX_KEYS });
  /** When the attempts in progress began, the oldest first. */
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
    begin(keys) {
      const attempt = { startedAt: now() };
      for (const key of keys) inProgress.set(key, (inProgress.get(key) ?? new Set()).add(attempt));
      return () => {
        for (const key of keys) end(key, attempt);
      };
    },

    nextDelayMs(key, { minDelayMs, intervalMs, slots }) {
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
