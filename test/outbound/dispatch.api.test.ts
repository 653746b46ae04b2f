import { describe, expect, test } from '@jest/globals';
import { TRACK_DELIVERY } from '../../workflows/outbound/track-delivery.contract.ts';
import { eventually } from '../support/eventually.ts';
import { accepted, ambiguous, deferred, refused } from '../support/mail-services.ts';
import {
  arrangeSending,
  dispatchOnce,
  readMessageState,
  recordOnce,
  summarize,
} from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

const arrange = () => arrangeSending(database);
const stateOf = (messageId: string) => readMessageState(database, messageId);

describe('dispatch', () => {
  test('records an accepted message, its event, and tracking if the relay reports delivery', async () => {
    const world = await arrange();
    const id = await world.send('ada@people.example');
    await expect(dispatchOnce(world, id)).resolves.toBe('settled');
    const state = await stateOf(id);
    expect(state).toMatchObject({
      status: 'sent',
      recipients: ['sent'],
      attempts: ['accepted'],
      types: ['message.sent'],
    });
    expect(state.events[0]?.data).toEqual({
      message_id: id,
      thread_id: state.message.threadId,
      inbox_id: world.inbox.id,
      from_address: world.inbox.email,
      to_addresses: ['ada@people.example'],
      subject: 'Subject',
      provider_message_id: 'queue-1',
      sent_at: expect.any(String),
    });
    expect(world.commands.filter(({ start }) => start?.workflowType === TRACK_DELIVERY)).toHaveLength(1);
    expect(world.objects.get(state.message.rawKey ?? '')?.toString()).toContain(
      `Message-ID: <${state.message.rfcMessageId}>`,
    );
  });

  test.each([
    ['accepted', 'message.sent'],
    ['refused', 'message.rejected'],
  ] as const)(
    'announces a message that is %s with the addresses of its field To alone',
    async (answer, type) => {
      const world = await arrange();
      world.transport.answerWith(async () =>
        answer === 'accepted' ? accepted : { ...refused, scope: 'message' },
      );
      const id = await world.sendTo({
        to: [{ email: 'ada@people.example' }],
        cc: [{ email: 'cc@people.example' }],
        bcc: [{ email: 'bcc@people.example' }],
      });
      await dispatchOnce(world, id);
      const { events, types } = await stateOf(id);
      expect(types).toEqual([type]);
      expect(events[0]?.data).toMatchObject({ to_addresses: ['ada@people.example'] });
    },
  );

  test('transmits and records once when both steps are repeated', async () => {
    const world = await arrange();
    const id = await world.send('ada@people.example');
    await world.dispatch.prepare(id);
    await world.dispatch.transmit(id, () => false);
    await world.dispatch.transmit(id, () => false);
    expect((await stateOf(id)).attempts).toEqual(['accepted']);
    await expect(recordOnce(world, id)).resolves.toBe('settled');
    await expect(recordOnce(world, id)).resolves.toBe('settled');
    expect(world.transport.transmissions).toHaveLength(1);
    expect(await stateOf(id)).toMatchObject({ status: 'sent', types: ['message.sent'] });
  });

  test('gives each recipient its own transaction, return path and outcome', async () => {
    const world = await arrange();
    world.transport.answerWith(async ({ recipient }) => {
      if (recipient.startsWith('bad')) return refused;
      return recipient.startsWith('later') ? deferred : accepted;
    });
    const id = await world.send('ada@people.example', 'bad@people.example', 'later@people.example');
    await expect(dispatchOnce(world, id)).resolves.toBe('deferred');
    expect(await stateOf(id)).toMatchObject({
      status: 'deferred',
      recipients: ['sent', 'bounced', 'deferred'],
    });
    expect(new Set(world.transport.transmissions.map(({ sender }) => sender)).size).toBe(3);

    world.transport.answerWith(async () => accepted);
    await expect(dispatchOnce(world, id)).resolves.toBe('settled');
    const state = await stateOf(id);
    expect(state).toMatchObject({ status: 'bounced', recipients: ['sent', 'bounced', 'sent'] });
    expect(world.transport.transmissions.map(({ recipient }) => recipient)).toEqual([
      'ada@people.example',
      'bad@people.example',
      'later@people.example',
      'later@people.example',
    ]);
    expect(state.types).toEqual(['message.sent', 'message.bounced', 'message.sent']);
  });

  test('sets needs_attention and never resends when a worker crashes before it records the relay’s response', async () => {
    const world = await arrange();
    const id = await world.send('ada@people.example');
    world.transport.answerWith(() => new Promise(() => undefined));
    await world.dispatch.prepare(id);
    void world.dispatch.transmit(id, () => false);
    await eventually(() => expect(world.transport.transmissions).toHaveLength(1));

    world.transport.answerWith(async () => accepted);
    await world.dispatch.transmit(id, () => false);
    await expect(recordOnce(world, id)).resolves.toBe('needs_attention');
    await world.dispatch.transmit(id, () => false);
    expect(world.transport.transmissions).toHaveLength(1);
    expect(await stateOf(id)).toMatchObject({
      status: 'needs_attention',
      attempts: ['ambiguous'],
      types: [],
    });
  });

  test.each([
    { resolution: 'sent' as const, state: 'settled', status: 'sent', transmissions: 1 },
    { resolution: 'resend' as const, state: 'deferred', status: 'deferred', transmissions: 1 },
  ])(
    'sets an ambiguous message resolved as $resolution to $status',
    async ({ resolution, state, status, transmissions }) => {
      const world = await arrange();
      world.transport.answerWith(async () => ambiguous);
      const id = await world.send('ada@people.example');
      await expect(dispatchOnce(world, id)).resolves.toBe('needs_attention');
      await expect(world.dispatch.resolveAmbiguity(id, { resolution }).then(summarize)).resolves.toBe(state);
      expect((await stateOf(id)).status).toBe(status);
      expect(world.transport.transmissions).toHaveLength(transmissions);
    },
  );

  test('settles an ambiguous message by a signed report', async () => {
    const world = await arrange();
    world.transport.answerWith(async () => ambiguous);
    const id = await world.send('ada@people.example');
    await dispatchOnce(world, id);
    await database.systemTransaction((transaction) => world.outcomes.apply(transaction, id, [delivered]));
    expect(await stateOf(id)).toMatchObject({
      status: 'delivered',
      types: ['message.sent', 'message.delivered'],
      attempts: ['accepted'],
    });
    expect(world.commands.at(-1)?.signal?.workflowId).toBe(`send/${id}`);
  });

  test('signals the run when a report settles one of several ambiguous recipients', async () => {
    const world = await arrange();
    world.transport.answerWith(async () => ambiguous);
    const id = await world.send('ada@people.example', 'bob@people.example');
    await dispatchOnce(world, id);
    const earlier = world.commands.length;
    await database.systemTransaction((transaction) => world.outcomes.apply(transaction, id, [delivered]));
    expect(await stateOf(id)).toMatchObject({
      status: 'needs_attention',
      attempts: ['accepted', 'ambiguous'],
    });
    const signaled = world.commands.slice(earlier).map(({ signal }) => signal?.workflowId);
    expect(signaled).toContain(`send/${id}`);
  });

  test('applies a report that arrives before the send is recorded, once', async () => {
    const world = await arrange();
    const id = await world.send('ada@people.example');
    await world.dispatch.prepare(id);
    await world.dispatch.transmit(id, () => false);
    const fold = () =>
      database.systemTransaction((transaction) => world.outcomes.apply(transaction, id, [delivered]));
    await fold();
    await fold();
    await expect(recordOnce(world, id)).resolves.toBe('settled');
    expect(await stateOf(id)).toMatchObject({
      status: 'delivered',
      types: ['message.sent', 'message.delivered'],
    });
  });

  test('gives a late bounce precedence over a delivery, and a complaint precedence over both', async () => {
    const world = await arrange();
    const id = await world.send('ada@people.example');
    await dispatchOnce(world, id);
    const fold = (outcome: typeof delivered | typeof bounced | typeof complained) =>
      database.systemTransaction((transaction) => world.outcomes.apply(transaction, id, [outcome]));
    await fold(delivered);
    await fold(bounced);
    expect((await stateOf(id)).status).toBe('bounced');
    await fold(delivered);
    expect((await stateOf(id)).status).toBe('bounced');
    await fold(complained);
    await fold(bounced);
    const state = await stateOf(id);
    expect(state.status).toBe('complained');
    expect(state.types).toEqual([
      'message.sent',
      'message.delivered',
      'message.bounced',
      'message.complained',
    ]);
  });

  test('does not transmit a canceled message, and does not cancel a transmitted one', async () => {
    const world = await arrange();
    const canceled = await world.send('ada@people.example');
    await world.sends.cancel(world.scope, canceled);
    await expect(dispatchOnce(world, canceled)).resolves.toBe('finished');
    expect(world.transport.transmissions).toHaveLength(0);
    const sent = await world.send('ada@people.example');
    await dispatchOnce(world, sent);
    await expect(world.sends.cancel(world.scope, sent)).rejects.toMatchObject({ code: 'conflict' });
    expect(await world.dispatch.cancel(sent, 'test')).toEqual({
      status: 'sent',
      hasUnsent: false,
      ambiguous: [],
    });
  });

  test('corrects an ambiguous attempt if its worker is still running, and signals the run', async () => {
    const world = await arrange();
    const id = await world.send('ada@people.example');
    const relayResponse = Promise.withResolvers<typeof accepted>();
    world.transport.answerWith(() => relayResponse.promise);
    await world.dispatch.prepare(id);
    const transmitting = world.dispatch.transmit(id, () => false);
    await eventually(() => expect(world.transport.transmissions).toHaveLength(1));
    await world.dispatch.transmit(id, () => false);
    await expect(recordOnce(world, id)).resolves.toBe('needs_attention');

    relayResponse.resolve(accepted);
    await transmitting;
    expect(await stateOf(id)).toMatchObject({
      status: 'sent',
      attempts: ['accepted'],
      types: ['message.sent'],
    });
    expect(world.commands.at(-1)?.signal?.workflowId).toBe(`send/${id}`);
    expect(world.transport.transmissions).toHaveLength(1);
  });

  test('returns too_late for a cancel during transmission, from the API and from an operator', async () => {
    const world = await arrange();
    const id = await world.send('ada@people.example');
    let release: () => void = () => undefined;
    world.transport.answerWith(async () => {
      await new Promise<void>((done) => {
        release = done;
      });
      return accepted;
    });
    await world.dispatch.prepare(id);
    const transmitting = world.dispatch.transmit(id, () => false);
    await eventually(() => expect(world.transport.transmissions).toHaveLength(1));
    await expect(world.sends.cancel(world.scope, id)).rejects.toMatchObject({ code: 'conflict' });
    release();
    await transmitting;
    await expect(recordOnce(world, id)).resolves.toBe('settled');
    expect((await stateOf(id)).status).toBe('sent');
  });

  test('refuses at dispatch because of a paused inbox after the request', async () => {
    const world = await arrange();
    const id = await world.send('ada@people.example');
    await database.db
      .updateTable('inboxes')
      .set({ send_paused: true, send_paused_reason: 'bounces' })
      .where('id', '=', world.inbox.id)
      .execute();
    await expect(dispatchOnce(world, id)).resolves.toBe('finished');
    const state = await stateOf(id);
    expect(state).toMatchObject({
      status: 'rejected',
      recipients: ['rejected'],
      types: ['message.rejected'],
    });
    expect(state.events[0]?.data).toMatchObject({
      rejection_reason: 'account_paused',
      to_addresses: ['ada@people.example'],
    });
    expect(world.transport.transmissions).toHaveLength(0);
  });
});

const delivered = { position: 0, kind: 'delivered' as const, statusCode: '2.0.0', diagnosticCode: null };
const bounced = {
  position: 0,
  kind: 'bounced' as const,
  statusCode: '5.1.1',
  diagnosticCode: 'smtp; 550 no such user',
};
const complained = {
  position: 0,
  kind: 'complained' as const,
  statusCode: null,
  diagnosticCode: null,
  feedbackType: 'abuse',
};
