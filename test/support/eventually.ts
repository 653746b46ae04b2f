import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Repeats `check` until it does not throw, and returns its result. Use it for asynchronous effects instead of a fixed
 * sleep.
 *
 * @throws the last error of `check` after `timeoutMs`.
 */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 10_000): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() >= deadline) throw error;
    }
    await sleep(20);
  }
}
