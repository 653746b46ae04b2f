import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  what: string;
  timeoutMs: number;
  intervalMs?: number;
  /** Ends the wait if success has become impossible. */
  failed?: () => Error | undefined;
  /** Aborts the wait with its reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Repeats `probe` until it does not throw.
 *
 * @throws Error with the last reason after `timeoutMs`, what `failed` returns, or the reason of `signal`.
 */
export async function waitUntil<T>(probe: () => Promise<T>, options: WaitOptions): Promise<T> {
  const deadline = Date.now() + options.timeoutMs;
  for (;;) {
    options.signal?.throwIfAborted();
    const failure = options.failed?.();
    if (failure) throw failure;
    try {
      return await probe();
    } catch (error) {
      if (Date.now() >= deadline) {
        const seconds = Math.round(options.timeoutMs / 1000);
        throw new Error(`${options.what} did not become ready within ${seconds} s`, { cause: error });
      }
    }
    await sleep(options.intervalMs ?? 100);
  }
}
