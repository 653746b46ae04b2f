import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `check` until it stops throwing, and answers what it returned. For what happens in its own time; nothing sleeps
 * for a fixed one.
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
