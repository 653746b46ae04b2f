import { expect, test } from '@jest/globals';
import {
  createPasswordHashQueue,
  MAX_CONCURRENT_HASHES,
  MAX_WAITING_HASHES,
  MAX_WAITING_HASHES_PER_NETWORK,
} from '../../domain/identity/password-hash-queue.ts';

/** A queue whose computations end when the test says so. */
function arrange() {
  const queue = createPasswordHashQueue();
  const running: { ip: string | null; end: () => void }[] = [];
  const refused: unknown[] = [];
  const enter = (ip: string | null) =>
    void queue
      .run(ip, () => new Promise<void>((end) => running.push({ ip, end })))
      .catch((error) => refused.push(error));
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  /** Ends the oldest one, and returns who runs then. */
  const endOne = async () => {
    running.shift()?.end();
    await settle();
    return running.map(({ ip }) => ip);
  };
  return { enter, running, refused, settle, endOne };
}

test('a network has one running and four waiting computations, and more are refused at once', async () => {
  const { enter, running, refused, settle, endOne } = arrange();
  for (let host = 1; host <= 60; host += 1) enter(`2001:db8::${host}`);
  await settle();
  expect(running).toHaveLength(1);
  expect(refused).toHaveLength(60 - 1 - MAX_WAITING_HASHES_PER_NETWORK);
  expect(refused[0]).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '2' } });
  // The other slot is for other networks, which take turns: none of them waits behind this network's computations.
  enter('192.0.2.1');
  enter('192.0.2.2');
  await settle();
  expect(running.map(({ ip }) => ip)).toEqual(['2001:db8::1', '192.0.2.1']);
  await endOne();
  expect(await endOne()).toContain('192.0.2.2');
  for (let count = 0; count < 10; count += 1) await endOne();
  enter('2001:db8::1');
  await settle();
  expect(running).toHaveLength(1);
});

test('a process has 32 waiting computations', async () => {
  const { enter, running, refused, settle, endOne } = arrange();
  for (let network = 0; network < 40; network += 1) enter(`192.0.2.${network}`);
  await settle();
  expect(refused).toHaveLength(40 - MAX_CONCURRENT_HASHES - MAX_WAITING_HASHES);
  // A program of the operator waits without a limit.
  enter(null);
  await settle();
  expect(refused).toHaveLength(40 - MAX_CONCURRENT_HASHES - MAX_WAITING_HASHES);
  while (running.length > 0) await endOne();
  enter('192.0.2.1');
  await settle();
  expect(running).toHaveLength(1);
});

test('a computation that begins leaves its place in the queue to another of its network', async () => {
  const { enter, running, refused, settle, endOne } = arrange();
  for (let host = 1; host <= 1 + MAX_WAITING_HASHES_PER_NETWORK; host += 1) enter(`2001:db8::${host}`);
  await settle();
  for (let ended = 1; ended <= 10; ended += 1) {
    await endOne();
    enter('2001:db8::a');
    await settle();
    expect(refused).toHaveLength(ended - 1);
    enter('2001:db8::b');
    await settle();
    expect(refused).toHaveLength(ended);
  }
  expect(running).toHaveLength(1);
});

test('a computation that fails leaves its place, and its caller gets the error', async () => {
  const queue = createPasswordHashQueue();
  const fail = () => queue.run('192.0.2.1', () => Promise.reject(new Error('no memory')));
  for (let count = 0; count < 50; count += 1) await expect(fail()).rejects.toThrow('no memory');
  const throwAtOnce = () =>
    queue.run('192.0.2.1', () => {
      throw new Error('no password');
    });
  for (let count = 0; count < 50; count += 1) await expect(throwAtOnce()).rejects.toThrow('no password');
  await expect(queue.run('192.0.2.1', async () => 'hash')).resolves.toBe('hash');
});
