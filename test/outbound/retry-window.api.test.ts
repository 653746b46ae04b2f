import { describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { pino } from 'pino';
import { createOutboundActivities } from '../../activities/outbound.activities.ts';
import { accepted, ambiguous, deferred } from '../support/mail-services.ts';
import { arrangeSending, dispatchOnce, readMessageState, type Sending } from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

const passWindow = (id: string) =>
  database.db
    .updateTable('messages')
    .set({ queued_at: new Date(Date.now() - 25 * 3_600_000) })
    .where('id', '=', id)
    .execute();
const reportDelivery = ({ outcomes }: Sending, id: string) =>
  database.systemTransaction((transaction) =>
    outcomes.apply(transaction, id, [
      { position: 0, kind: 'delivered', statusCode: '2.0.0', diagnosticCode: null },
    ]),
  );
/** Answers one recipient with `answer`, and defers the other. */
const deferOther =
  (name: string, answer: typeof ambiguous | typeof accepted) =>
  async ({ recipient }: { recipient: string }) =>
    recipient.startsWith(name) ? answer : deferred;

describe('after the retry window', () => {
  test('a recipient that is deferred again bounces', async () => {
    const world = await arrangeSending(database);
    world.transport.answerWith(async () => deferred);
    const id = await world.send('ada@people.example');
    await dispatchOnce(world, id);
    await passWindow(id);
    await expect(dispatchOnce(world, id)).resolves.toBe('settled');
    const state = await readMessageState(database, id);
    expect(state).toMatchObject({ status: 'bounced', attempts: ['deferred', 'deferred'] });
    expect(state.events.at(-1)?.data).toMatchObject({ bounce_type: 'Transient', bounce_sub_type: 'General' });
  });

  test('a recipient with an unknown outcome waits for a decision or a report', async () => {
    const world = await arrangeSending(database);
    world.transport.answerWith(async () => deferred);
    const id = await world.send('ada@people.example');
    await dispatchOnce(world, id);
    await passWindow(id);
    world.transport.answerWith(async () => ambiguous);
    expect(await dispatchOnce(world, id)).toBe('needs_attention');
    // Also if its run starts again.
    expect(await dispatchOnce(world, id)).toBe('needs_attention');
    await reportDelivery(world, id);
    expect(await readMessageState(database, id)).toMatchObject({
      status: 'delivered',
      types: ['message.sent', 'message.delivered'],
    });
  });

  test('a recipient with an unknown outcome does not bounce while another is tried again', async () => {
    const world = await arrangeSending(database);
    world.transport.answerWith(async () => deferred);
    const id = await world.send('ada@people.example', 'bob@people.example');
    await dispatchOnce(world, id);
    world.transport.answerWith(deferOther('ada', ambiguous));
    expect(await dispatchOnce(world, id)).toBe('needs_attention');
    await passWindow(id);
    expect(await dispatchOnce(world, id)).toBe('needs_attention');
    expect((await readMessageState(database, id)).recipients).toEqual(['deferred', 'bounced']);
  });

  test('a recipient whose worker dies in the last attempt does not bounce', async () => {
    const world = await arrangeSending(database);
    const logger = pino({ level: 'silent' });
    const { transmitMessage } = createOutboundActivities({ ...world.sendOptions, logger });
    const run = (messageId: string, attempt: number, scheduledTimestampMs: number) =>
      new MockActivityEnvironment(
        { attempt, scheduledTimestampMs },
        { logger: new DefaultLogger('ERROR') },
      ).run(transmitMessage, { messageId });
    world.transport.answerWith(async () => deferred);
    const id = await world.send('ada@people.example');
    await run(id, 1, Date.now());
    await passWindow(id);
    const scheduledAt = Date.now() + 1;
    world.transport.answerWith(async () => {
      throw new Error('The worker dies.');
    });
    await expect(run(id, 1, scheduledAt)).rejects.toThrow('dies');
    world.transport.answerWith(async () => accepted);
    await run(id, 2, scheduledAt);
    expect(await readMessageState(database, id)).toMatchObject({
      status: 'needs_attention',
      attempts: ['deferred', 'ambiguous'],
    });
  });

  test('a recipient in transmission does not bounce when a report about another arrives', async () => {
    const world = await arrangeSending(database);
    world.transport.answerWith(deferOther('ada', accepted));
    const id = await world.send('ada@people.example', 'bob@people.example');
    await dispatchOnce(world, id);
    await passWindow(id);
    world.transport.answerWith(async () => {
      await reportDelivery(world, id);
      return accepted;
    });
    await expect(dispatchOnce(world, id)).resolves.toBe('settled');
    expect(await readMessageState(database, id)).toMatchObject({
      recipients: ['delivered', 'sent'],
      types: ['message.sent', 'message.delivered', 'message.sent'],
    });
  });

  test('a recipient on hold does not bounce beside one with an unknown outcome', async () => {
    const world = await arrangeSending(database);
    world.transport.answerWith(deferOther('ada', ambiguous));
    const id = await world.send('ada@people.example', 'bob@people.example');
    expect(await dispatchOnce(world, id)).toBe('needs_attention');
    await database.db
      .updateTable('inboxes')
      .set({ status: 'suspended' })
      .where('id', '=', world.inbox.id)
      .execute();
    await passWindow(id);
    expect(await dispatchOnce(world, id)).toBe('needs_attention');
    expect((await readMessageState(database, id)).recipients[1]).toBe('deferred');
    expect(world.transport.transmissions).toHaveLength(2);
  });
});
