/** Limits how many callers may work concurrently. Waiting ones go in order of priority; within one, keys take turns. */
export interface TurnSemaphore {
  /**
   * @param turn a smaller `priority` goes first.
   * @returns releases the permit; calling it again has no effect.
   */
  acquire(turn: Turn): Promise<() => void>;
}

export interface Turn {
  priority: number;
  key: string;
}

type Waiting = () => void;

export function createTurnSemaphore(permits: number): TurnSemaphore {
  /** By priority, then by key. A key without waiting callers has no entry; the first key is next. */
  const levels = new Map<number, Map<string, Waiting[]>>();
  let free = permits;

  function add({ priority, key }: Turn, waiting: Waiting): void {
    const level = levels.get(priority) ?? new Map<string, Waiting[]>();
    levels.set(priority, level);
    const queue = level.get(key);
    if (queue) queue.push(waiting);
    else level.set(key, [waiting]);
  }

  function takeNext(): Waiting | undefined {
    if (levels.size === 0) return undefined;
    const priority = Math.min(...levels.keys());
    const level = levels.get(priority);
    const [entry] = level ?? [];
    if (!level || !entry) return undefined;
    const [key, queue] = entry;
    const next = queue.shift();
    level.delete(key);
    if (queue.length > 0) level.set(key, queue);
    if (level.size === 0) levels.delete(priority);
    return next;
  }

  function createRelease(): () => void {
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const next = takeNext();
      if (next) next();
      else free += 1;
    };
  }

  return {
    async acquire(turn) {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => add(turn, resolve));
      return createRelease();
    },
  };
}
