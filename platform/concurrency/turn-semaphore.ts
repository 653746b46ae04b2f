import { createFairShare, type Release } from './fair-share.ts';

/** Limits how many callers may work concurrently. Waiting ones go in order of priority; within one, keys take turns. */
export interface TurnSemaphore {
  /**
   * @param turn a smaller `priority` goes first.
   * @returns releases the permit; calling it again has no effect.
   */
  acquire(turn: Turn): Promise<Release>;
}

export interface Turn {
  priority: number;
  key: string;
}

/** The fair share of callers who have no organization yet: keys are networks. */
export function createTurnSemaphore(permits: number): TurnSemaphore {
  const shares = createFairShare({ name: 'password hashes', capacity: permits });
  return {
    acquire: ({ priority, key }) => shares.acquire({ priority, holders: [{ kind: 'network', id: key }] }),
  };
}
