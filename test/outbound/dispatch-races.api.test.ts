import { describe, expect, test } from '@jest/globals';
import type { DeliveryOutcome } from '../../domain/delivery-reports/report-outcomes.ts';
import { lockOutcomeState, saveOutcomeState } from '../../domain/outbound/outcome-state.ts';
import { beginAttempt, settleAttempt } from '../../domain/outbound/transmit-message.ts';
import { eventually } from '../support/eventually.ts';
import { accepted, ambiguous, deferred } from '../support/mail-services.ts';
import {
  arrangeSending,
  dispatchOnce,
  readMessageState,
  recordOnce,
  type Sending,
  summarize,
} from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

const TO = ['first@people.example', 'second@people.example', 'third@people.example'];
const DAY_MS = 24 * 3_600_000;

const stateOf = (messageId: string) => readMessageState(database, messageId);

function report({ outcomes }: Sending, messageId: string, ...positions: number[]) {
  const reported = positions.map(
    (position): DeliveryOutcome => ({
      position,
      kind: 'delivered',
      statusCode: '2.0.0',
      diagnosticCode: null,
    }),
  );
  return database.systemTransaction((transaction) => outcomes.apply(transaction, messageId, reported));
}

describe('a report that arrives before the send is recorded', () => {
  test('for the first recipient does not block the others', async () => {
    const world = await arrangeSending(database);
    const id = await world.send(...TO);
    world.transport.answerWith(async ({ recipient }) => {
      // The first copy is delivered before the relay’s response to it is recorded.
      if (recipient === TO[0]) await report(world, id, 0);
      return accepted;
    });
    await expect(dispatchOnce(world, id)).resolves.toBe('settled');
    expect(world.transport.transmissions.map(({ recipient }) => recipient)).toEqual(TO);
    expect(await stateOf(id)).toMatchObject({ recipients: ['delivered', 'sent', 'sent'] });
  });

  test('does not block the others while a recipient is ambiguous and awaits an operator’s decision', async () => {
    const world = await arrangeSending(database);
    const id = await world.send(...TO);
    world.transport.answerWith(async ({ recipient }) => {
      if (recipient !== TO[1]) return accepted;
      await report(world, id, 0);
      return ambiguous;
    });
    await expect(dispatchOnce(world, id)).resolves.toBe('needs_attention');
    expect(await stateOf(id)).toMatchObject({
      status: 'needs_attention',
      recipients: ['delivered', 'pending', 'sent'],
    });
  });

  test('for every recipient settles the message', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('first@people.example');
    world.transport.answerWith(async () => {
      await report(world, id, 0);
      return accepted;
    });
    await expect(dispatchOnce(world, id)).resolves.toBe('settled');
    expect(await stateOf(id)).toMatchObject({
      status: 'delivered',
      types: ['message.sent', 'message.delivered'],
    });
  });
});

describe('a result that arrives while its attempt is being recorded as ambiguous', () => {
  test('is still applied afterwards', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await world.dispatch.prepare(id);
    const attempt = await beginAttempt(database, { id }, 0, { marksSending: true });
    if (!attempt) throw new Error('nothing was begun');
    // Another worker assumes that the transmitting worker has crashed.
    await expect(beginAttempt(database, { id }, 0, { marksSending: true })).resolves.toBeNull();
    await database.systemTransaction(async ({ db }) => {
      const outcomeState = await lockOutcomeState(db, id);
      if (!outcomeState) throw new Error('the message does not exist');
      const [ambiguous] = outcomeState.attempts;
      if (ambiguous) outcomeState.recorded.push({ ...ambiguous, recorded: true });
      await expect(settleAttempt(database, attempt, accepted)).resolves.toBe('corrected');
      await saveOutcomeState(db, outcomeState);
    });
    await expect(recordOnce(world, id)).resolves.toBe('settled');
    expect(await stateOf(id)).toMatchObject({ status: 'sent', attempts: ['accepted'] });
  });
});

describe('a partially transmitted message', () => {
  /** The first recipient is accepted, the second one deferred. */
  async function arrangeHalfSent() {
    const world = await arrangeSending(database);
    world.transport.answerWith(async ({ recipient }) => (recipient === TO[0] ? accepted : deferred));
    const id = await world.send(...TO.slice(0, 2));
    await expect(dispatchOnce(world, id)).resolves.toBe('deferred');
    return { world, id };
  }

  test('is final after the gate has rejected the remaining recipients', async () => {
    const { world, id } = await arrangeHalfSent();
    await database.db
      .updateTable('inboxes')
      .set({ send_paused: true })
      .where('id', '=', world.inbox.id)
      .execute();
    await expect(dispatchOnce(world, id)).resolves.toBe('finished');
    const state = await stateOf(id);
    expect(state).toMatchObject({
      status: 'sent',
      recipients: ['sent', 'rejected'],
      types: ['message.sent', 'message.bounced'],
    });
    expect(state.events[1]?.data).toMatchObject({
      bounce_type: 'Transient',
      bounced_recipients: [{ email_address: TO[1] }],
    });
  });

  test('is final when an operator ends its run, without sending to the remaining recipients', async () => {
    const { world, id } = await arrangeHalfSent();
    expect(await world.dispatch.cancel(id, 'An operator ended it.')).toEqual({
      status: 'sent',
      hasUnsent: false,
      ambiguous: [],
    });
    const state = await stateOf(id);
    expect(state).toMatchObject({ status: 'sent', recipients: ['sent', 'rejected'] });
    expect(state.message.statusDetail).toBe('An operator ended it.');
    await expect(dispatchOnce(world, id)).resolves.toBe('finished');
    expect(world.transport.transmissions).toHaveLength(2);
  });

  test('can be canceled through the API for the recipients that were not transmitted to', async () => {
    const { world, id } = await arrangeHalfSent();
    const { message, recipients } = await world.sends.cancel(world.scope, id);
    expect([message.status, recipients.map(({ status }) => status)]).toEqual(['sent', ['sent', 'rejected']]);
    await expect(dispatchOnce(world, id)).resolves.toBe('finished');
    expect(world.transport.transmissions).toHaveLength(2);
    await expect(world.sends.cancel(world.scope, id)).rejects.toMatchObject({ code: 'conflict' });
  });

  test('is not sent to canceled recipients, even if it was canceled during a transmission', async () => {
    const world = await arrangeSending(database);
    const response = Promise.withResolvers<typeof accepted>();
    world.transport.answerWith(() => response.promise);
    const id = await world.send(...TO);
    await world.dispatch.prepare(id);
    const transmitting = world.dispatch.transmit(id, () => false);
    await eventually(() => expect(world.transport.transmissions).toHaveLength(1));
    const { message } = await world.sends.cancel(world.scope, id);
    expect(message.status).toBe('sending');
    response.resolve(accepted);
    await transmitting;
    await expect(recordOnce(world, id)).resolves.toBe('settled');
    expect(await stateOf(id)).toMatchObject({
      status: 'sent',
      recipients: ['sent', ...TO.slice(1).map(() => 'rejected')],
    });
    expect(world.transport.transmissions).toHaveLength(1);
  });
});

describe('a message with an ambiguous recipient', () => {
  /** The outcome for the first recipient is unknown; the second is deferred. */
  async function arrangeAmbiguous() {
    const world = await arrangeSending(database);
    world.transport.answerWith(async ({ recipient }) => (recipient === TO[0] ? ambiguous : deferred));
    const id = await world.send(...TO.slice(0, 2));
    const state = await dispatchOnce(world, id);
    return { world, id, state };
  }

  test('is sent to its other recipients, and never again to the ambiguous one', async () => {
    const { world, id, state } = await arrangeAmbiguous();
    expect([state, await stateOf(id)]).toEqual([
      'needs_attention',
      expect.objectContaining({ status: 'needs_attention', recipients: ['pending', 'deferred'] }),
    ]);
    world.transport.answerWith(async () => accepted);
    await expect(dispatchOnce(world, id)).resolves.toBe('needs_attention');
    expect(await stateOf(id)).toMatchObject({ status: 'needs_attention', recipients: ['pending', 'sent'] });
    expect(world.transport.transmissions.map(({ recipient }) => recipient)).toEqual([TO[0], TO[1], TO[1]]);
    expect(await world.dispatch.record(id)).toEqual({
      status: 'needs_attention',
      hasUnsent: false,
      ambiguous: [0],
      messageIdLeft: id,
    });
  });

  test('does not reject the ambiguous recipient when the gate refuses the rest', async () => {
    const { world, id } = await arrangeAmbiguous();
    await database.db
      .updateTable('inboxes')
      .set({ send_paused: true })
      .where('id', '=', world.inbox.id)
      .execute();
    await expect(dispatchOnce(world, id)).resolves.toBe('needs_attention');
    expect(await stateOf(id)).toMatchObject({
      status: 'needs_attention',
      recipients: ['pending', 'rejected'],
    });
  });

  test.each([
    { by: 'an operator', cancel: ({ dispatch }: Sending, id: string) => dispatch.cancel(id, 'Ended.') },
    { by: 'the API', cancel: ({ sends, scope }: Sending, id: string) => sends.cancel(scope, id) },
  ])('can be canceled by $by for the others, and still needs a decision', async ({ cancel }) => {
    const { world, id } = await arrangeAmbiguous();
    await cancel(world, id);
    expect(await stateOf(id)).toMatchObject({
      status: 'needs_attention',
      recipients: ['pending', 'rejected'],
    });
    const decided = await world.dispatch.resolveAmbiguity(id, { resolution: 'sent' });
    expect(decided).toEqual({ status: 'sent', hasUnsent: false, ambiguous: [] });
    expect((await stateOf(id)).recipients).toEqual(['sent', 'rejected']);
  });

  test('is resolved for one recipient, by a decision that cannot affect a later attempt', async () => {
    const world = await arrangeSending(database);
    world.transport.answerWith(async () => ambiguous);
    const id = await world.send(...TO.slice(0, 2));
    await dispatchOnce(world, id);
    const decision = { resolution: 'resend', recipient: 1, decidedAt: new Date().toISOString() } as const;
    const resent = await world.dispatch.resolveAmbiguity(id, decision);
    expect(resent).toMatchObject({ hasUnsent: true, ambiguous: [0] });
    await dispatchOnce(world, id);
    // The signal may arrive twice.
    expect((await world.dispatch.resolveAmbiguity(id, decision)).ambiguous).toEqual([0, 1]);
    expect(world.transport.transmissions).toHaveLength(3);
    expect(summarize(await world.dispatch.resolveAmbiguity(id, { resolution: 'sent' }))).toBe('settled');
  });
});

test('detects a worker crash during transmission even if the gate refuses the message afterwards', async () => {
  const world = await arrangeSending(database);
  const id = await world.send(...TO.slice(0, 2));
  await world.dispatch.prepare(id);
  world.transport.answerWith(() => {
    throw new Error('the worker crashes here');
  });
  await expect(world.dispatch.transmit(id, () => false)).rejects.toThrow('the worker crashes here');
  await database.db
    .updateTable('inboxes')
    .set({ send_paused: true })
    .where('id', '=', world.inbox.id)
    .execute();
  await expect(dispatchOnce(world, id)).resolves.toBe('needs_attention');
  expect(await stateOf(id)).toMatchObject({
    status: 'needs_attention',
    recipients: ['pending', 'rejected'],
    attempts: ['ambiguous'],
  });
  expect(world.transport.transmissions).toHaveLength(1);
});

test('does not transmit what the gate has refused, even if the attempt of another worker ends as deferred meanwhile', async () => {
  const world = await arrangeSending(database);
  const id = await world.send(...TO.slice(0, 2));
  await world.dispatch.prepare(id);
  const attempt = await beginAttempt(database, { id }, 0, { marksSending: true });
  if (!attempt) throw new Error('nothing was begun');
  await database.db
    .updateTable('inboxes')
    .set({ send_paused: true })
    .where('id', '=', world.inbox.id)
    .execute();
  await expect(world.dispatch.prepare(id)).resolves.toBe('proceed');
  await settleAttempt(database, attempt, deferred);
  await world.dispatch.transmit(id, () => false);
  await expect(recordOnce(world, id)).resolves.toBe('deferred');
  await expect(dispatchOnce(world, id)).resolves.toBe('finished');
  expect(await stateOf(id)).toMatchObject({
    status: 'rejected',
    recipients: ['rejected', 'rejected'],
    attempts: ['deferred'],
  });
  expect(world.transport.transmissions).toEqual([]);
});

test('honors the resolution “resend” no matter how long the message has waited', async () => {
  const world = await arrangeSending(database);
  world.transport.answerWith(async () => ambiguous);
  const id = await world.send('first@people.example');
  await dispatchOnce(world, id);
  await database.db
    .updateTable('messages')
    .set({ queued_at: new Date(Date.now() - 2 * DAY_MS) })
    .where('id', '=', id)
    .execute();
  await expect(world.dispatch.resolveAmbiguity(id, { resolution: 'resend' }).then(summarize)).resolves.toBe(
    'deferred',
  );
  world.transport.answerWith(async () => accepted);
  await expect(dispatchOnce(world, id)).resolves.toBe('settled');
  expect(await stateOf(id)).toMatchObject({ status: 'sent', attempts: ['deferred', 'accepted'] });
});

describe('the simulator’s addresses', () => {
  test.each([
    ['delivered', 'delivered', ['message.sent', 'message.delivered']],
    ['bounced', 'bounced', ['message.sent', 'message.bounced']],
    ['complained', 'complained', ['message.sent', 'message.delivered', 'message.complained']],
    ['rejected', 'rejected', ['message.rejected']],
  ])('%s@ ends as %s without sending anything, even in production', async (localPart, status, types) => {
    for (const environment of ['production', 'sandbox'] as const) {
      const world = await arrangeSending(database, { environment });
      const id = await world.send(`${localPart}+tag@simulator.mail.test`);
      await dispatchOnce(world, id);
      expect(await stateOf(id)).toMatchObject({ status, types });
      expect(world.transport.transmissions).toHaveLength(0);
    }
  });
});
