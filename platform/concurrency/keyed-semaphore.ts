import { createSemaphore, type Semaphore } from './semaphore.ts';

/** Limits how many callers with the same key may work concurrently, so that no key takes every shared permit. */
export interface KeyedSemaphore {
  /**
   * @returns releases the permit; calling it again has no effect.
   * @throws the signal's reason if it aborts first.
   */
  acquire(key: string, signal?: AbortSignal): Promise<() => void>;
}

/** Holds state only for keys with callers that work or wait. */
export function createKeyedSemaphore(permitsPerKey: number): KeyedSemaphore {
  const byKey = new Map<string, { semaphore: Semaphore; callers: number }>();
  return {
    async acquire(key, signal) {
      const entry = byKey.get(key) ?? { semaphore: createSemaphore(permitsPerKey), callers: 0 };
      byKey.set(key, entry);
      entry.callers += 1;
      let isHeld = true;
      const leave = () => {
        if (!isHeld) return;
        isHeld = false;
        entry.callers -= 1;
        if (entry.callers === 0) byKey.delete(key);
      };
      try {
        const release = await entry.semaphore.acquire(signal);
        return () => {
          release();
          leave();
        };
      } catch (error) {
        leave();
        throw error;
      }
    },
  };
}

/**
 * Acquires permits one after the other.
 *
 * @returns releases all of them.
 * @throws what the first failing one throws; the others are released then.
 */
export async function acquireAll(acquisitions: readonly (() => Promise<() => void>)[]): Promise<() => void> {
  const held: (() => void)[] = [];
  const releaseAll = () => {
    for (const release of held.reverse()) release();
  };
  try {
    for (const acquire of acquisitions) held.push(await acquire());
    return releaseAll;
  } catch (error) {
    releaseAll();
    throw error;
  }
}
