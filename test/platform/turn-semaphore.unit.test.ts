import { expect, test } from '@jest/globals';
import { createTurnSemaphore, type Turn } from '../../platform/concurrency/turn-semaphore.ts';

/** Queues the turns behind a held permit. @returns the order in which they get it, one after the other. */
async function orderOf(turns: Turn[]): Promise<number[]> {
  const semaphore = createTurnSemaphore(1);
  const release = await semaphore.acquire({ priority: 1, key: 'first' });
  const order: number[] = [];
  const work = turns.map(async (turn, index) => {
    const done = await semaphore.acquire(turn);
    order.push(index);
    done();
  });
  release();
  await Promise.all(work);
  return order;
}

test('lets keys take turns, each in its own order', async () => {
  const flood = Array.from({ length: 4 }, () => ({ priority: 3, key: 'org_flood' }));
  const other = { priority: 3, key: 'org_other' };
  expect(await orderOf([...flood, other, other])).toEqual([0, 4, 1, 5, 2, 3]);
});

test('serves a smaller priority before every key of a larger one', async () => {
  expect(
    await orderOf([
      { priority: 4, key: 'org_a' },
      { priority: 2, key: 'org_b' },
      { priority: 1, key: 'org_a' },
      { priority: 1, key: 'org_a' },
    ]),
  ).toEqual([2, 3, 1, 0]);
});

test('hands out no more permits than it has, and each once', async () => {
  const semaphore = createTurnSemaphore(2);
  const turn = { priority: 1, key: 'org_a' };
  const first = await semaphore.acquire(turn);
  await semaphore.acquire(turn);
  let granted = 0;
  const waiting = [1, 2].map(() => semaphore.acquire(turn).then(() => (granted += 1)));
  await Promise.resolve();
  expect(granted).toBe(0);
  first();
  first();
  await waiting[0];
  await new Promise(setImmediate);
  expect(granted).toBe(1);
});
