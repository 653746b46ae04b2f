import { describe, expect, test } from '@jest/globals';
import { cancelOpenRecipients } from '../../domain/outbound/cancel-send.ts';
import { type TransmissionOptions, transmitMessage } from '../../domain/outbound/transmit-message.ts';
import { accepted, refused } from '../support/mail-services.ts';
import { arrangeSending, readMessageState, type Sending } from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

/** What the message's row says about its stored bytes, and those bytes. */
async function storedOf({ objects }: Sending, messageId: string) {
  const { message, attempts } = await readMessageState(database, messageId);
  const bytes = objects.get(message.rawKey ?? '');
  return { isStored: bytes !== undefined && bytes.length === message.sizeBytes, attempts };
}

/** Runs before the bytes are stored, when the message has been loaded. */
const withStorage = (world: Sending, before: () => Promise<unknown>): TransmissionOptions => ({
  ...world.sendOptions,
  storage: {
    ...world.sendOptions.storage,
    async putBytes(...object) {
      await before();
      return world.sendOptions.storage.putBytes(...object);
    },
  },
});

describe('the row of a message has the key of the stored bytes', () => {
  test('before the relay gets the first of them', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example', 'bob@people.example');
    const found: unknown[] = [];
    world.transport.answerWith(async () => {
      found.push(await storedOf(world, id));
      return accepted;
    });
    await world.dispatch.prepare(id);
    await expect(transmitMessage(world.sendOptions, id, () => false)).resolves.toBe('done');
    expect(found).toEqual([
      { isStored: true, attempts: ['attempting'] },
      { isStored: true, attempts: ['accepted', 'attempting'] },
    ]);
  });

  test('if the worker shuts down before the first attempt', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await world.dispatch.prepare(id);
    await expect(transmitMessage(world.sendOptions, id, () => true)).resolves.toBe('interrupted');
    expect(await storedOf(world, id)).toEqual({ isStored: true, attempts: [] });
  });

  test('if the message is canceled while they are stored', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await world.dispatch.prepare(id);
    const options = withStorage(world, () => cancelOpenRecipients(database, world.outcomes, id, 'Canceled.'));
    await expect(transmitMessage(options, id, () => false)).resolves.toBe('done');
    expect(await storedOf(world, id)).toEqual({ isStored: true, attempts: [] });
    expect(world.transport.transmissions).toEqual([]);
  });
});

test('the bytes that the row names are never built again', async () => {
  const world = await arrangeSending(database);
  const id = await world.send('ada@people.example', 'bob@people.example');
  world.transport.answerWith(async () => refused);
  await world.dispatch.prepare(id);
  await transmitMessage(world.sendOptions, id, () => true);
  let stored = 0;
  const options = withStorage(world, async () => {
    stored += 1;
  });
  await expect(transmitMessage(options, id, () => false)).resolves.toBe('done');
  expect(stored).toBe(0);
  expect(await storedOf(world, id)).toEqual({ isStored: true, attempts: ['refused', 'refused'] });
});
