/** Waiting within a worker for a slot that one of its own attempts is about to give back. */
export interface FreedSlots {
  /**
   * Whether a wait is worth it. At an endpoint that gives slots back by the moment any number may wait: their runs
   * would only come again. Of one that does not, a few: the worker is there for others as well.
   */
  isNear(endpointId: string): boolean;
  /** Until a slot came free, or the time is over: one may have come free just before the wait began, so look in any case. */
  wait(endpointId: string, timeoutMs: number): Promise<void>;
  /** An attempt at the endpoint has ended: whoever waits longest is next. */
  announce(endpointId: string): void;
}

export interface FreedSlotsOptions {
  /** At an endpoint that is not quick. */
  waitingAtMost: number;
  /** An endpoint that gave a slot back in the last so many milliseconds is quick. */
  quickWithinMs: number;
  /** Milliseconds. */
  now: () => number;
}

const MAX_ENDPOINTS = 10_000;

export function createFreedSlots({ waitingAtMost, quickWithinMs, now }: FreedSlotsOptions): FreedSlots {
  const lines = new Map<string, Set<() => void>>();
  const freedAt = new Map<string, number>();
  return {
    isNear(endpointId) {
      const quick = now() - (freedAt.get(endpointId) ?? Number.NEGATIVE_INFINITY) <= quickWithinMs;
      return quick || (lines.get(endpointId)?.size ?? 0) < waitingAtMost;
    },

    wait(endpointId, timeoutMs) {
      const line = lines.get(endpointId) ?? new Set();
      lines.set(endpointId, line);
      return new Promise((resolve) => {
        const leave = () => {
          clearTimeout(timer);
          line.delete(leave);
          if (line.size === 0) lines.delete(endpointId);
          resolve();
        };
        const timer = setTimeout(leave, timeoutMs);
        line.add(leave);
      });
    },

    announce(endpointId) {
      // Set anew, so that the endpoint that gave none back for longest stands first.
      freedAt.delete(endpointId);
      freedAt.set(endpointId, now());
      const [oldest] = freedAt.keys();
      if (freedAt.size > MAX_ENDPOINTS && oldest !== undefined) freedAt.delete(oldest);
      const [next] = lines.get(endpointId) ?? [];
      next?.();
    },
  };
}
