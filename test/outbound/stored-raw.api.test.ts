import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { cancelOpenRecipients } from '../../domain/outbound/cancel-send.ts';
import { type TransmissionOptions, transmitMessage } from '../../domain/outbound/transmit-message.ts';
import { eventually } from '../support/eventually.ts';
import { accepted } from '../support/mail-services.ts';
import { arrangeSending, readMessageState, type Sending } from '../support/outbound-mail.ts';
import { query } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

/** What the message's row says about its stored bytes, and those bytes. */
async function storedOf({ objects }: Sending, messageId: string) {
  const { message, attempts } = await readMessageState(database, messageId);
  const bytes = objects.get(message.rawKey ?? '');
  return { isStored: bytes !== undefined && bytes.length === message.sizeBytes, attempts };
}

/** Options whose storage runs `before` each time that it stores bytes. The message is loaded by then. */
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

/** Until the statement that begins an attempt waits for a lock. */
async function waitForBlockedAttempt(): Promise<void> {
  await eventually(async () => {
    const waiting = await query(
      database,
      sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
        and query like '%send_attempts%'`,
    );
    expect(waiting).toHaveLength(1);
  });
}

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
    await expect(transmitMessage(world.sendOptions, id, () => false, { marksSending: true })).resolves.toBe(
      'done',
    );
    expect(found).toEqual([
      { isStored: true, attempts: ['attempting'] },
      { isStored: true, attempts: ['accepted', 'attempting'] },
    ]);
  });

  test('if the first attempt waits for another change of the message', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await world.dispatch.prepare(id);
    const { transmitting } = await database.systemTransaction(async ({ db }) => {
      await db.updateTable('messages').set({ updated_at: new Date() }).where('id', '=', id).execute();
      const begun = transmitMessage(world.sendOptions, id, () => false, { marksSending: true });
      await waitForBlockedAttempt();
      return { transmitting: begun };
    });
    await expect(transmitting).resolves.toBe('done');
    expect(await storedOf(world, id)).toEqual({ isStored: true, attempts: ['accepted'] });
  });

  test('if the worker shuts down before the first attempt', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await world.dispatch.prepare(id);
    await expect(transmitMessage(world.sendOptions, id, () => true, { marksSending: true })).resolves.toBe(
      'interrupted',
    );
    expect(await storedOf(world, id)).toEqual({ isStored: true, attempts: [] });
  });

  test('if the message is canceled while they are stored', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await world.dispatch.prepare(id);
    const options = withStorage(world, () => cancelOpenRecipients(database, world.outcomes, id, 'Canceled.'));
    await expect(transmitMessage(options, id, () => false, { marksSending: true })).resolves.toBe('done');
    expect(await storedOf(world, id)).toEqual({ isStored: true, attempts: [] });
    expect(world.transport.transmissions).toEqual([]);
  });
});

test('bytes whose key is in the row are not built again', async () => {
  const world = await arrangeSending(database);
  const id = await world.send('ada@people.example', 'bob@people.example');
  await world.dispatch.prepare(id);
  await transmitMessage(world.sendOptions, id, () => true, { marksSending: true });
  let stored = 0;
  const options = withStorage(world, async () => {
    stored += 1;
  });
  await expect(transmitMessage(options, id, () => false, { marksSending: true })).resolves.toBe('done');
  expect(stored).toBe(0);
  expect(await storedOf(world, id)).toEqual({ isStored: true, attempts: ['accepted', 'accepted'] });
});
