/** Limits how many callers may work concurrently; the others wait in order. */
export interface Semaphore {
  /**
   * @returns releases the permit; calling it again has no effect.
   * @throws the signal's reason if it aborts first.
   */
  acquire(signal?: AbortSignal): Promise<() => void>;
}

export function createSemaphore(permits: number): Semaphore {
  const waiting = new Set<() => void>();
  let free = permits;

  function release(): void {
    const [next] = waiting;
    if (next) {
      waiting.delete(next);
      next();
    } else free += 1;
  }

  function createRelease(): () => void {
    let released = false;
    return () => {
      if (!released) release();
      released = true;
    };
  }

  return {
    async acquire(signal) {
      signal?.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return createRelease();
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const abort = () => {
        waiting.delete(resolve);
        reject(signal?.reason);
      };
      waiting.add(resolve);
      signal?.addEventListener('abort', abort, { once: true });
      await promise;
      signal?.removeEventListener('abort', abort);
      return createRelease();
    },
  };
}
