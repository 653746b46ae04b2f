import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { createFairShare } from '../../platform/concurrency/fair-share.ts';
import { eventually } from '../support/eventually.ts';
import { TIME_FACTOR } from '../support/time-factor.ts';
import type { RawSmtpClient } from './raw-smtp-client.ts';
import { cleanUpAfterEach, cleanUps, greeted, listen } from './test-listener.ts';

cleanUpAfterEach();

const MIB = 1024 * 1024;
const CONFIG = { INBOUND_MAX_SIZE_BYTES: 4 * MIB };
const RATE = { windowMs: 300 * TIME_FACTOR, minBytes: 1_000, minLargeBytes: 20_000 };
const TOO_SLOW = '421 4.4.2 Data arrives too slowly, closing connection';
const lines = (bytes: number) => `${'x'.repeat(998)}\r\n`.repeat(bytes / 1000);

/** Writes `bytes` every 20 ms until the test or the connection ends. */
function drip(client: RawSmtpClient, bytes: string): void {
  const timer = setInterval(() => client.write(bytes), 20);
  client.socket.once('close', () => clearInterval(timer));
  cleanUps.push(() => clearInterval(timer));
}

async function startMessage(port: number, content: string): Promise<RawSmtpClient> {
  const client = await greeted(port);
  await client.startData('agent@agents.test');
  client.write(content);
  return client;
}

test('closes a connection whose message stops arriving, and stores nothing', async () => {
  const { listener, committed, objects } = await listen({ limits: { dataRate: RATE } });
  const client = await startMessage(listener.port, 'Subject: unfinished\r\n\r\n');
  expect(await client.reply()).toBe(TOO_SLOW);
  expect(await client.reply()).toBe('closed');
  expect([committed.length, objects.size]).toEqual([0, 0]);
});

test('closes a connection that drips bytes', async () => {
  const { listener, committed } = await listen({ limits: { dataRate: RATE } });
  const client = await startMessage(listener.port, 'Subject: slow\r\n\r\n');
  drip(client, 'x');
  expect(await client.reply()).toBe(TOO_SLOW);
  expect(await client.reply()).toBe('closed');
  expect(committed).toHaveLength(0);
});

test('gives the slots of 16 dripping connections of one address to other clients', async () => {
  const { listener, committed } = await listen({ config: CONFIG, limits: { dataRate: RATE } });
  const slow = await Promise.all(
    Array.from({ length: 16 }, () => startMessage(listener.port, lines(2 * MIB))),
  );
  // More than a small message needs, less than one with a slot.
  for (const client of slow) drip(client, 'x'.repeat(200));
  const others = await Promise.all(
    ['127.0.0.2', '127.0.0.3'].flatMap((address) =>
      Array.from({ length: 8 }, async () => {
        const client = await greeted(listener.port, address);
        await client.startData('agent@agents.test');
        client.write(`${lines(2 * MIB)}.\r\n`);
        return client.reply();
      }),
    ),
  );
  expect(others).toEqual(others.map(() => expect.stringMatching(/^250/)));
  expect(await Promise.all(slow.map((client) => client.reply()))).toEqual(slow.map(() => TOO_SLOW));
  expect(committed).toHaveLength(16);
});

test('closes a connection that drips the rest of a refused message', async () => {
  const { listener } = await listen({ limits: { dataRate: RATE } });
  const client = await startMessage(listener.port, 'Received: x\r\n'.repeat(60));
  drip(client, 'x');
  expect(await client.reply()).toBe(TOO_SLOW);
});

test('accepts a message that arrives slowly but steadily', async () => {
  const { listener, committed } = await listen({ limits: { dataRate: RATE } });
  const client = await startMessage(listener.port, 'Subject: steady\r\n\r\n');
  let sent = 0;
  await eventually(() => {
    client.write(lines(2_000));
    sent += 1;
    expect(sent).toBeGreaterThan(30);
  });
  client.write('.\r\n');
  expect(await client.reply()).toMatch(/^250/);
  expect(committed).toHaveLength(1);
});

test('does not count the time in which a client waits for a slot or for storage', async () => {
  const slots = createFairShare({ name: 'test', capacity: 1 });
  const release = await slots.acquire({ holders: [] });
  const finishStorage = Promise.withResolvers<void>();
  const storage = {
    async putStream(_key: string, source: Readable) {
      await finishStorage.promise;
      const { length } = await buffer(source);
      return { sizeBytes: length, sha256: Buffer.alloc(32) };
    },
  };
  const { listener } = await listen({
    config: CONFIG,
    storage,
    limits: { dataRate: RATE, largeMessageSlots: slots },
  });
  const other = await listen({ limits: { dataRate: RATE } });
  const waitForWindow = async () =>
    expect(await (await startMessage(other.listener.port, 'Subject: unfinished\r\n\r\n')).reply()).toBe(
      TOO_SLOW,
    );
  const client = await startMessage(listener.port, `${lines(2 * MIB)}.\r\n`);
  await waitForWindow();
  finishStorage.resolve();
  await waitForWindow();
  release();
  expect(await client.reply()).toMatch(/^250/);
});

test('releases the slot of a refused message before its rest has arrived', async () => {
  const slots = createFairShare({ name: 'test', capacity: 1 });
  const { listener } = await listen({ config: CONFIG, limits: { largeMessageSlots: slots } });
  await startMessage(listener.port, `${lines(2 * MIB)}${lines(3 * MIB)}`);
  const next = await startMessage(listener.port, `${lines(2 * MIB)}.\r\n`);
  expect(await next.reply()).toMatch(/^250/);
});
