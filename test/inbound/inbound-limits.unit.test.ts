import { describe, expect, test } from '@jest/globals';
import { createFairShare, type FairShare } from '../../platform/concurrency/fair-share.ts';
import { eventually } from '../support/eventually.ts';
import { expectWithin } from '../support/expect-within.ts';
import { RawSmtpClient } from './raw-smtp-client.ts';
import { cleanUpAfterEach, cleanUps, greeted, listen, ROUTE } from './test-listener.ts';

cleanUpAfterEach();

describe('a client over its limit', () => {
  const MIB = 1024 * 1024;
  const LARGE = { INBOUND_MAX_SIZE_BYTES: 4 * MIB };
  const lines = (bytes: number) => `${'x'.repeat(998)}\r\n`.repeat(bytes / 1000);

  test('of connections gets 421 while other clients are served, and is served again after disconnecting', async () => {
    const { listener } = await listen({ config: { INBOUND_SMTP_MAX_CONNECTIONS_PER_IP: 2 } });
    const first = await greeted(listener.port);
    await greeted(listener.port);
    const third = new RawSmtpClient(listener.port);
    cleanUps.push(() => third.close());
    expect(await third.reply()).toBe('421 4.7.0 Too many connections from your address, try again later');
    expect(await third.reply()).toBe('closed');
    const neighbor = new RawSmtpClient(listener.port, '127.0.0.2');
    cleanUps.push(() => neighbor.close());
    expect(await neighbor.reply()).toMatch(/^220 /);
    first.close();
    await eventually(async () => {
      const again = new RawSmtpClient(listener.port);
      cleanUps.push(() => again.close());
      expect(await again.reply()).toMatch(/^220 /);
    });
  });

  test('of large messages waits for a slot while small messages are accepted', async () => {
    const slots = createFairShare({ name: 'test', capacity: 1 });
    let asked = 0;
    const largeMessages: Pick<FairShare, 'acquire'> = {
      acquire(claim) {
        asked += 1;
        return slots.acquire(claim);
      },
    };
    const { listener, committed } = await listen({
      config: LARGE,
      limits: { largeMessageSlots: largeMessages },
    });
    const holder = await greeted(listener.port);
    await holder.startData('agent@agents.test');
    holder.write(lines(2 * MIB));
    await eventually(() => expect(asked).toBe(1));
    const next = await greeted(listener.port);
    await next.startData('agent@agents.test');
    next.write(`${lines(2 * MIB)}.\r\n`);
    await eventually(() => expect(asked).toBe(2));
    const small = await greeted(listener.port);
    await small.startData('agent@agents.test');
    small.write('Subject: small\r\n\r\n.\r\n');
    expect(await small.reply()).toMatch(/^250/);
    expect(committed).toHaveLength(1);
    holder.write('.\r\n');
    expect(await holder.reply()).toMatch(/^250/);
    expect(await next.reply()).toMatch(/^250/);
    expect(committed).toHaveLength(3);
  });

  test('of large messages gets 452 after the timeout, and the session continues', async () => {
    const largeMessages = createFairShare({ name: 'test', capacity: 1 });
    const release = await largeMessages.acquire({ holders: [] });
    const limits = { largeMessageSlots: largeMessages, largeMessageTimeoutMs: 50 };
    const { listener, objects } = await listen({ config: LARGE, limits });
    const client = await greeted(listener.port);
    const deliver = async () => {
      await client.startData('agent@agents.test');
      client.write(`${lines(2 * MIB)}.\r\n`);
      return client.reply();
    };
    expect(await deliver()).toBe('452 4.3.1 Too many large messages, try again later');
    expect(objects.size).toBe(0);
    release();
    expect(await deliver()).toMatch(/^250/);
    expect(await deliver()).toMatch(/^250/);
  });

  test('of large messages that drip from two networks to one inbox leaves slots to other inboxes', async () => {
    const routes = (address: string) => {
      const [id = ''] = address.split('@');
      return { ...ROUTE, inboxId: `inb_${id}`, organizationId: `org_${id}` };
    };
    const { listener } = await listen({
      config: { ...LARGE, INBOUND_SMTP_MAX_CONNECTIONS_PER_IP: 50 },
      receipts: { resolve: async (address) => routes(address) },
      limits: { largeMessageTimeoutMs: 60_000 },
    });
    const drip = async (network: string) => {
      const client = await greeted(listener.port, network);
      await client.startData('greedy@agents.test');
      client.write(lines(2 * MIB));
      await eventually(() => expect(client.socket.writableLength).toBe(0));
      return client;
    };
    for (let open = 0; open < 20; open += 1) await drip(open % 2 === 0 ? '127.0.0.2' : '127.0.0.3');
    await expectWithin(5_000, async () => {
      const other = await greeted(listener.port, '127.0.0.4');
      await other.startData('other@agents.test');
      other.write(`${lines(2 * MIB)}.\r\n`);
      expect(await other.reply()).toMatch(/^250/);
    });
  });

  test('that disconnects while it waits releases its place in the queue', async () => {
    const largeMessages = createFairShare({ name: 'test', capacity: 1 });
    const release = await largeMessages.acquire({ holders: [] });
    const { listener } = await listen({ config: LARGE, limits: { largeMessageSlots: largeMessages } });
    const client = await greeted(listener.port);
    await client.startData('agent@agents.test');
    client.write(lines(2 * MIB));
    await eventually(() => expect(client.socket.writableLength).toBe(0));
    client.close();
    release();
    const released = await largeMessages.acquire({ holders: [], signal: AbortSignal.timeout(5_000) });
    released();
  });
});
