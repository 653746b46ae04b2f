/** When deliveries that found no free slot look again. */
export interface SlotTurns {
  /** @returns milliseconds from now. */
  next(endpointId: string, pace: Pace): number;
}

export interface Pace {
  /** Not before. */
  leastMs: number;
  /** Between two looks at one endpoint. */
  everyMs: number;
}

export interface SlotTurnsOptions {
  furthestMs: number;
  /** Milliseconds. */
  now: () => number;
}

const MAX_ENDPOINTS = 10_000;

/**
 * Gives those who wait for one endpoint their turns one after another: with one waiting or ten thousand, the endpoint
 * costs a bounded number of looks a second. In memory, since it is about pace and not about right: each process keeps
 * its own, and a restart forgets it.
 */
export function createSlotTurns({ furthestMs, now }: SlotTurnsOptions): SlotTurns {
  const lastTurns = new Map<string, number>();
  return {
    next(endpointId, { leastMs, everyMs }) {
      const current = now();
      const earliest = current + leastMs;
      const following = Math.max(earliest, (lastTurns.get(endpointId) ?? 0) + everyMs);
      // Who would come after the furthest turn shares one with those that are there already.
      if (following > current + furthestMs)
        return Math.round(leastMs + Math.random() * (furthestMs - leastMs));
      // Set anew, so that the endpoint that waited last stands last.
      lastTurns.delete(endpointId);
      lastTurns.set(endpointId, following);
      const [oldest] = lastTurns.keys();
      if (lastTurns.size > MAX_ENDPOINTS && oldest !== undefined) lastTurns.delete(oldest);
      return following - current;
    },
  };
}
