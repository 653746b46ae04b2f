import { describe, expect, test } from '@jest/globals';
import { createFairShare, organizationHolder, thirdOf } from '../../platform/concurrency/fair-share.ts';

const by = (...ids: string[]) => ({ holders: ids.map(organizationHolder) });
const settle = () => new Promise(setImmediate);

describe('a fair share', () => {
  test('gives one holder everything while no other waits', () => {
    const shares = createFairShare({ name: 'test', capacity: 9 });
    const releases = Array.from({ length: 9 }, () => shares.tryAcquire(by('a')));
    expect(releases).not.toContain(null);
    expect(shares.tryAcquire(by('a'))).toBeNull();
    releases[0]?.();
    releases[0]?.();
    expect(shares.usage()).toEqual({ used: 8, waiting: 0 });
  });

  test('gives a holder with a third no more while others wait', async () => {
    const shares = createFairShare({ name: 'test', capacity: 9 });
    const ofA = Array.from({ length: 9 }, () => shares.tryAcquire(by('a')));
    const order: string[] = [];
    for (const id of [...'aaaaaaabbbbb']) void shares.acquire(by(id)).then(() => order.push(id));
    for (const release of ofA.slice(0, 4)) release?.();
    await settle();
    expect(order.slice(0, 3)).toEqual(['b', 'b', 'b']);
    // Both have their share or more: they take turns.
    expect(order).toHaveLength(4);
    expect(shares.usage()).toEqual({ used: 9, waiting: 8 });
  });

  test('keeps a reserve for holders within their share, however much one holds', () => {
    const shares = createFairShare({ name: 'test', capacity: 9, reserve: thirdOf(9) });
    for (let taken = 0; taken < 9; taken += 1) expect(shares.tryAcquire(by('a'))).not.toBeNull();
    expect(shares.tryAcquire(by('a'))).toBeNull();
    expect(['b', 'b', 'b', 'b'].map((id) => shares.tryAcquire(by(id)) !== null)).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });

  test('is equal among more than three holders', () => {
    const shares = createFairShare({ name: 'test', capacity: 12, reserve: 4 });
    for (const id of ['a', 'b', 'c', 'd'])
      for (let taken = 0; taken < 3; taken += 1) expect(shares.tryAcquire(by(id))).not.toBeNull();
    // With e there are five, each with a share of two; a to d have more.
    expect(shares.tryAcquire(by('a'))).toBeNull();
    expect(shares.tryAcquire(by('e'))).not.toBeNull();
    expect(shares.tryAcquire(by('e'))).not.toBeNull();
    expect(shares.tryAcquire(by('e'))).toBeNull();
  });

  test('takes back the newest claim of the holder furthest above its share', () => {
    const shares = createFairShare({ name: 'test', capacity: 6 });
    const taken: string[] = [];
    const claim = (id: string, name: string) =>
      shares.tryAcquire({ ...by(id), reclaim: () => taken.push(name) > 0 });
    for (const name of ['1', '2', '3', '4']) claim('a', name);
    claim('b', '5');
    claim('b', '6');
    expect(claim('a', '7')).toBeNull();
    expect(claim('c', '8')).not.toBeNull();
    expect(taken).toEqual(['4']);
    expect(claim('c', '9')).not.toBeNull();
    expect(taken).toEqual(['4', '3']);
    // Everyone has a third.
    expect(claim('c', '10')).toBeNull();
    expect(taken).toEqual(['4', '3']);
  });

  test('does not take back a claim that refuses', () => {
    const shares = createFairShare({ name: 'test', capacity: 3 });
    const asked: number[] = [];
    for (let taken = 0; taken < 3; taken += 1)
      shares.tryAcquire({
        ...by('a'),
        reclaim() {
          asked.push(taken);
          return false;
        },
      });
    expect(shares.tryAcquire(by('b'))).toBeNull();
    expect(asked).toEqual([2, 1, 0]);
    expect(shares.usage().used).toBe(3);
  });

  test('counts a claim towards each of its holders', () => {
    const shares = createFairShare({ name: 'test', capacity: 9, reserve: 3 });
    const claim = (network: string, inbox: string) =>
      shares.tryAcquire({
        holders: [
          { kind: 'network', id: network },
          { kind: 'inbox', id: inbox },
        ],
      });
    for (let taken = 0; taken < 9; taken += 1) claim(`network ${taken}`, 'inbox a');
    expect(claim('network 10', 'inbox a')).toBeNull();
    expect(claim('network 11', 'inbox b')).not.toBeNull();
  });

  test('limits amounts, and one holder to its maximum', () => {
    const shares = createFairShare({ name: 'test', capacity: 100 });
    const claim = (amount: number) =>
      shares.tryAcquire({ holders: [{ kind: 'credential', id: 'key', max: 32 }], amount });
    expect(claim(33)).toBeNull();
    const release = claim(30);
    expect(claim(3)).toBeNull();
    expect(claim(2)).not.toBeNull();
    release?.();
    expect(claim(30)).not.toBeNull();
  });

  test('serves a smaller priority first, and lets holders take turns', async () => {
    const shares = createFairShare({ name: 'test', capacity: 1 });
    const release = await shares.acquire(by('first'));
    const order: string[] = [];
    const wait = (id: string, priority: number) =>
      shares.acquire({ ...by(id), priority }).then((done) => {
        order.push(`${priority}${id}`);
        done();
      });
    const waiting = [wait('a', 3), wait('a', 3), wait('b', 3), wait('c', 1)];
    release();
    await Promise.all(waiting);
    expect(order).toEqual(['1c', '3a', '3b', '3a']);
  });

  test('forgets a claim that aborts, also in the moment of its grant', async () => {
    const shares = createFairShare({ name: 'test', capacity: 1 });
    const release = await shares.acquire(by('a'));
    const controller = new AbortController();
    const waiting = shares.acquire({ ...by('b'), signal: controller.signal });
    controller.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    await expect(shares.acquire({ ...by('b'), signal: controller.signal })).rejects.toThrow('gone');
    release();
    expect(shares.usage()).toEqual({ used: 0, waiting: 0 });
  });
});
