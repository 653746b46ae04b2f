import { setTimeout as sleep } from 'node:timers/promises';
import { TIME_FACTOR } from './time-factor.ts';

/**
 * Repeats `check` until it does not throw, and returns its result. Use it for asynchronous effects instead of a fixed
 * sleep.
 *
 * @param timeoutMs on a fast machine, see {@link TIME_FACTOR}.
 * @throws the last error of `check` after that time.
 */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 10_000): Promise<T> {
  const deadline = Date.now() + timeoutMs * TIME_FACTOR;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() >= deadline) throw error;
    }
    await sleep(20);
  }
}
