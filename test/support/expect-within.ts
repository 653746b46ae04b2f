import { expect } from '@jest/globals';
import { TIME_FACTOR } from './time-factor.ts';

/**
 * Runs `work`, and fails if it takes too long.
 *
 * @param limitMs on a fast machine, see {@link TIME_FACTOR}.
 * @returns the result of `work`.
 */
export async function expectWithin<T>(limitMs: number, work: () => T | Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await work();
  expect(performance.now() - startedAt).toBeLessThan(limitMs * TIME_FACTOR);
  return result;
}

/**
 * Runs `work`, which computes without waiting, and fails if it takes too much processor time of this thread: a busy machine
 * does not extend that.
 *
 * @param limitMs on a fast machine, see {@link TIME_FACTOR}.
 * @returns the result of `work`.
 */
export function expectComputedWithin<T>(limitMs: number, work: () => T): T {
  const before = process.threadCpuUsage();
  const result = work();
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(limitMs * TIME_FACTOR);
  return result;
}
