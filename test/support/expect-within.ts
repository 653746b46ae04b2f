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
