import { describe, expect, test } from '@jest/globals';
import { createSemaphore } from '../../platform/concurrency/semaphore.ts';

/** Whether a promise settles within the current turn of the event loop. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const later = new Promise((done) => setImmediate(() => done('later')));
  return (await Promise.race([promise.then(() => 'settled'), later])) === 'settled';
}

describe('semaphore', () => {
  test('grants permits up to its limit, then in order of request', async () => {
    const slots = createSemaphore(2);
    const releaseFirst = await slots.acquire();
    const releaseSecond = await slots.acquire();
    const third = slots.acquire();
    const fourth = slots.acquire();
    expect(await isSettled(third)).toBe(false);
    releaseSecond();
    expect([await isSettled(third), await isSettled(fourth)]).toEqual([true, false]);
    releaseFirst();
    expect(await isSettled(fourth)).toBe(true);
  });

  test('counts a permit released twice only once', async () => {
    const slots = createSemaphore(1);
    const release = await slots.acquire();
    release();
    release();
    await slots.acquire();
    expect(await isSettled(slots.acquire())).toBe(false);
  });

  test('skips waiters that were aborted', async () => {
    const slots = createSemaphore(1);
    const release = await slots.acquire();
    const controller = new AbortController();
    const aborted = slots.acquire(controller.signal);
    controller.abort(new Error('too long'));
    await expect(aborted).rejects.toThrow('too long');
    await expect(slots.acquire(controller.signal)).rejects.toThrow('too long');
    release();
    expect(await isSettled(slots.acquire())).toBe(true);
  });
});
