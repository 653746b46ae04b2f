import { LRUCache } from 'lru-cache';

const MAX_HOLDERS = 10_000;
const MAX_KEYS = 1_000;
/** A key without a start for this long no longer counts. */
const KEPT_MS = 60_000;

export interface FairnessWeights {
  /**
   * Notes a start with the key.
   *
   * @returns the share of each of the holder's keys: one divided by the number of those with starts in the last minute.
   */
  weightOf(holder: string, fairnessKey: string): number;
}

/**
 * Divides the one share of a holder among its fairness keys, so that many keys give it no more of a task queue than one. Each
 * process counts its own starts: an estimate, which decides about order alone.
 */
export function createFairnessWeights(now: () => number = () => performance.now()): FairnessWeights {
  /** When each key of a holder last had a start, the latest one last. */
  const holders = new LRUCache<string, Map<string, number>>({ max: MAX_HOLDERS });
  return {
    weightOf(holder, fairnessKey) {
      const keys = holders.get(holder) ?? new Map<string, number>();
      holders.set(holder, keys);
      keys.delete(fairnessKey);
      keys.set(fairnessKey, now());
      for (const [key, startedAt] of keys) {
        if (keys.size <= MAX_KEYS && now() - startedAt < KEPT_MS) break;
        keys.delete(key);
      }
      return 1 / keys.size;
    },
  };
}
