/** So many may work at once; who comes later waits in line. */
export interface Semaphore {
  /**
   * @returns gives the slot back; calling it again changes nothing.
   * @throws the signal's reason where it is aborted first.
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
