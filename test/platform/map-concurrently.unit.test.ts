import { expect, test } from '@jest/globals';
import { mapConcurrently } from '../../platform/concurrency/map-concurrently.ts';

test('limits the calls at the same time and keeps the order of the results', async () => {
  let open = 0;
  let most = 0;
  const results = await mapConcurrently([5, 1, 4, 2, 3], 2, async (turns) => {
    most = Math.max(most, ++open);
    for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
    open -= 1;
    return turns * 10;
  });
  expect(results).toEqual([50, 10, 40, 20, 30]);
  expect(most).toBe(2);
});

test('fails with the first error', async () => {
  const work = async (item: number) => {
    if (item > 1) throw new Error(`item ${item}`);
  };
  await expect(mapConcurrently([1, 2, 3], 1, work)).rejects.toThrow('item 2');
});

test('maps nothing to nothing', async () => {
  await expect(mapConcurrently([], 4, async () => 'never')).resolves.toEqual([]);
});
