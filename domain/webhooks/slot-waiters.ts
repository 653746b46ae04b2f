import { LRUCache } from 'lru-cache';

export interface SlotWaitersOptions {
  /** Maximum number of waiting attempts for an endpoint without a recent release. */
  maxWaiters: number;
  /** A release is recent for this long. */
  recentReleaseMs: number;
  /** Milliseconds. */
  now: () => number;
}

const MAX_ENDPOINTS = 10_000;

/** Attempts that wait within a worker for a slot that one of its other attempts is about to release. */
export function createSlotWaiters({ maxWaiters, recentReleaseMs, now }: SlotWaitersOptions) {
  const waitersByEndpoint = new Map<string, Set<() => void>>();
  const releasedAt = new LRUCache<string, number>({ max: MAX_ENDPOINTS });
  return {
    /**
     * Whether waiting is worthwhile. If the endpoint released a slot recently, any number of attempts may wait, because
     * their runs would retry soon anyway. Otherwise only a few may wait, because they occupy the worker.
     */
    shouldWait(endpointId: string): boolean {
      const sinceReleaseMs = now() - (releasedAt.get(endpointId) ?? Number.NEGATIVE_INFINITY);
      return sinceReleaseMs <= recentReleaseMs || (waitersByEndpoint.get(endpointId)?.size ?? 0) < maxWaiters;
    },

    /**
     * Resolves when a slot is released or the timeout ends. Try to lease a slot in either case, because one may have
     * been released just before the wait began.
     */
    wait(endpointId: string, timeoutMs: number): Promise<void> {
      const waiters = waitersByEndpoint.get(endpointId) ?? new Set();
      waitersByEndpoint.set(endpointId, waiters);
      return new Promise((resolve) => {
        const leave = () => {
          clearTimeout(timer);
          waiters.delete(leave);
          if (waiters.size === 0) waitersByEndpoint.delete(endpointId);
          resolve();
        };
        const timer = setTimeout(leave, timeoutMs);
        waiters.add(leave);
      });
    },

    /** Call this when an attempt at the endpoint has ended. Wakes the attempt that has waited longest. */
    slotReleased(endpointId: string): void {
      releasedAt.set(endpointId, now());
      const [next] = waitersByEndpoint.get(endpointId) ?? [];
      next?.();
    },
  };
}
