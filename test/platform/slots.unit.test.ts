import { describe, expect, test } from '@jest/globals';
import { createSlots } from '../../platform/slots.ts';

/** Whether a promise has settled by the time everything that can go on went on. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const later = new Promise((done) => setImmediate(() => done('later')));
  return (await Promise.race([promise.then(() => 'settled'), later])) === 'settled';
}

describe('slots', () => {
  test('are given to so many at once, then in the order of asking', async () => {
    const slots = createSlots(2);
    const releaseFirst = await slots.take();
    const releaseSecond = await slots.take();
    const third = slots.take();
    const fourth = slots.take();
    expect(await isSettled(third)).toBe(false);
    releaseSecond();
    expect([await isSettled(third), await isSettled(fourth)]).toEqual([true, false]);
    releaseFirst();
    expect(await isSettled(fourth)).toBe(true);
  });

  test('given back twice count once', async () => {
    const slots = createSlots(1);
    const release = await slots.take();
    release();
    release();
    await slots.take();
    expect(await isSettled(slots.take())).toBe(false);
  });

  test('are not kept for whom gave up waiting', async () => {
    const slots = createSlots(1);
    const release = await slots.take();
    const patience = new AbortController();
    const impatient = slots.take(patience.signal);
    patience.abort(new Error('too long'));
    await expect(impatient).rejects.toThrow('too long');
    await expect(slots.take(patience.signal)).rejects.toThrow('too long');
    release();
    expect(await isSettled(slots.take())).toBe(true);
  });
});
