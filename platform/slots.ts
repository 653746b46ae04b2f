/** So many may work at once; who comes later waits in line. */
export interface Slots {
  /**
   * @returns gives the slot back; calling it again changes nothing.
   * @throws the signal's reason where it is aborted first.
   */
  take(signal?: AbortSignal): Promise<() => void>;
}

export function createSlots(count: number): Slots {
  const waiting = new Set<() => void>();
  let free = count;

  function release(): void {
    const [next] = waiting;
    if (next) {
      waiting.delete(next);
      next();
    } else free += 1;
  }

  function held(): () => void {
    let given = false;
    return () => {
      if (!given) release();
      given = true;
    };
  }

  return {
    async take(signal) {
      signal?.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return held();
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const giveUp = () => {
        waiting.delete(resolve);
        reject(signal?.reason);
      };
      waiting.add(resolve);
      signal?.addEventListener('abort', giveUp, { once: true });
      await promise;
      signal?.removeEventListener('abort', giveUp);
      return held();
    },
  };
}
