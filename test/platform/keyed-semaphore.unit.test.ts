import { expect, test } from '@jest/globals';
import { acquireAll, createKeyedSemaphore } from '../../platform/concurrency/keyed-semaphore.ts';
import { createSemaphore } from '../../platform/concurrency/semaphore.ts';

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const later = new Promise((done) => setImmediate(() => done('later')));
  return (await Promise.race([promise.then(() => 'settled'), later])) === 'settled';
}

test('limits each key separately', async () => {
  const permits = createKeyedSemaphore(2);
  const releaseFirst = await permits.acquire('a');
  await permits.acquire('a');
  const third = permits.acquire('a');
  expect(await isSettled(third)).toBe(false);
  expect(await isSettled(permits.acquire('b'))).toBe(true);
  releaseFirst();
  releaseFirst();
  expect(await isSettled(third)).toBe(true);
  expect(await isSettled(permits.acquire('a'))).toBe(false);
});

test('forgets a caller that aborts', async () => {
  const permits = createKeyedSemaphore(1);
  const release = await permits.acquire('a');
  const controller = new AbortController();
  const aborted = permits.acquire('a', controller.signal);
  controller.abort(new Error('too long'));
  await expect(aborted).rejects.toThrow('too long');
  release();
  expect(await isSettled(permits.acquire('a'))).toBe(true);
});

test('leaves shared permits to other keys', async () => {
  const shared = createSemaphore(2);
  const perKey = createKeyedSemaphore(1);
  const acquire = (key: string) => acquireAll([() => perKey.acquire(key), () => shared.acquire()]);
  await acquire('greedy');
  const second = acquire('greedy');
  expect(await isSettled(second)).toBe(false);
  expect(await isSettled(acquire('other'))).toBe(true);
});

test('releases the permits it holds if another one cannot be acquired', async () => {
  const shared = createSemaphore(1);
  const perKey = createKeyedSemaphore(1);
  const release = await shared.acquire();
  const signal = AbortSignal.timeout(10);
  await expect(acquireAll([() => perKey.acquire('a'), () => shared.acquire(signal)])).rejects.toThrow();
  expect(await isSettled(perKey.acquire('a'))).toBe(true);
  release();
  expect(await isSettled(shared.acquire())).toBe(true);
});
