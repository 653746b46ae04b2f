/** Waiting within a worker for a slot that one of its own attempts is about to give back. */
export interface FreedSlots {
  /**
   * Until a slot came free, or the time is over: one may have come free just before the wait began, so look in any case.
   *
   * @returns false, at once, where enough wait already: those who wait for a slow endpoint leave the worker to others.
   */
  wait(endpointId: string, timeoutMs: number): Promise<boolean>;
  /** An attempt at the endpoint has ended: whoever waits longest is next. */
  announce(endpointId: string): void;
}

export function createFreedSlots({ waitingAtMost }: { waitingAtMost: number }): FreedSlots {
  const lines = new Map<string, Set<() => void>>();
  return {
    wait(endpointId, timeoutMs) {
      const line = lines.get(endpointId) ?? new Set();
      if (line.size >= waitingAtMost) return Promise.resolve(false);
      lines.set(endpointId, line);
      return new Promise((resolve) => {
        const leave = () => {
          clearTimeout(timer);
          line.delete(leave);
          if (line.size === 0) lines.delete(endpointId);
          resolve(true);
        };
        const timer = setTimeout(leave, timeoutMs);
        line.add(leave);
      });
    },

    announce(endpointId) {
      const [next] = lines.get(endpointId) ?? [];
      next?.();
    },
  };
}
