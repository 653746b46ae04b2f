import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { limitTime } from '../../platform/child-pool.ts';
import { eventually } from '../support/eventually.ts';

/** @param usedCpuMs processor time at each question; the last one is repeated. */
function createChild(...usedCpuMs: (number | undefined)[]) {
  const killed: string[] = [];
  return {
    killed,
    child: {
      kill: (reason: string) => void killed.push(reason),
      usedCpuMs: async () => (usedCpuMs.length > 1 ? usedCpuMs.shift() : usedCpuMs[0]),
    } as unknown as Parameters<typeof limitTime>[0],
  };
}

const LIMIT = { timeoutMs: 20, minCpuMs: 100, checks: 3 };

test.each([
  ['that works all the time', [5_000, 5_100]],
  ['whose processor time the system does not tell', [undefined]],
])('a process %s is killed when its time is over', async (_what, used) => {
  const { child, killed } = createChild(...used);
  const limit = limitTime(child, LIMIT);
  await eventually(() => expect(killed[0]).toBe('it took more than 0.02 s'));
  expect(limit.isStarved()).toBe(false);
  limit.stop();
});

test('a process that others keep from the processor goes on, and is killed in the end', async () => {
  const { child, killed } = createChild(5_000, 5_010, 5_020);
  const limit = limitTime(child, { ...LIMIT, checks: 3 });
  await eventually(() => expect(killed[0]).toBe('the machine was too busy'));
  expect(limit.isStarved()).toBe(true);
  limit.stop();
});

test('a job that ends in time is not killed', async () => {
  const { child, killed } = createChild(0, 5_000);
  limitTime(child, LIMIT).stop();
  await sleep(50);
  expect(killed).toEqual([]);
});
