import { describe, expect, test } from '@jest/globals';
import type { TransmissionResult } from '../../platform/mail-transport/mail-transport.ts';
import { eventually } from '../support/eventually.ts';
import { accepted, deferred } from '../support/mail-services.ts';
import { arrangeSending, dispatchOnce, readMessageState, type Sending } from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();
const stateOf = (id: string) => readMessageState(database, id);
const cancel = ({ dispatch }: Sending, id: string) => dispatch.cancel(id, 'Canceled by an operator.');

/** A worker that has lost its connection to Temporal, but still waits for the relay's response about the last recipient. */
async function arrangeLostWorker(...to: string[]) {
  const world = await arrangeSending(database);
  const response = Promise.withResolvers<TransmissionResult>();
  const last = to.at(-1);
  world.transport.answerWith(({ recipient }) =>
    recipient === last ? response.promise : Promise.resolve(accepted),
  );
  const id = await world.send(...to);
  await world.dispatch.prepare(id);
  const transmitting = world.dispatch.transmit(id, () => false);
  await eventually(() => expect(world.transport.transmissions).toHaveLength(to.length));
  const answer = async (result: TransmissionResult) => {
    response.resolve(result);
    await transmitting;
    world.transport.answerWith(async () => accepted);
  };
  return { world, id, answer };
}

describe('a message that is canceled while a lost worker transmits it', () => {
  test('is not sent again if the relay defers it before the run tries again', async () => {
    const { world, id, answer } = await arrangeLostWorker('ada@people.example');
    await cancel(world, id);
    await answer(deferred);
    await dispatchOnce(world, id);
    const { status, message, recipients, attempts, types } = await stateOf(id);
    expect({ status, recipients, attempts, types }).toEqual({
      status: 'canceled',
      recipients: ['rejected'],
      attempts: ['deferred'],
      types: [],
    });
    expect(message.statusDetail).toBe('Canceled, and then deferred by the relay.');
    expect(world.transport.transmissions).toHaveLength(1);
  });

  test('is not sent again if the relay defers it after the run has found the outcome unknown', async () => {
    const { world, id, answer } = await arrangeLostWorker('ada@people.example');
    await cancel(world, id);
    expect(await dispatchOnce(world, id)).toBe('needs_attention');
    await answer(deferred);
    expect(await stateOf(id)).toMatchObject({ status: 'canceled', recipients: ['rejected'] });
    expect(await dispatchOnce(world, id)).toBe('finished');
    expect(world.transport.transmissions).toHaveLength(1);
  });

  test('is not sent again if it is canceled when the outcome is unknown already', async () => {
    const { world, id, answer } = await arrangeLostWorker('ada@people.example');
    expect(await dispatchOnce(world, id)).toBe('needs_attention');
    expect(await cancel(world, id)).toMatchObject({ status: 'needs_attention', ambiguous: [0] });
    await answer(deferred);
    expect(await stateOf(id)).toMatchObject({ status: 'canceled' });
  });

  test('stays sent for the recipients who have it', async () => {
    const { world, id, answer } = await arrangeLostWorker('ada@people.example', 'bob@people.example');
    await cancel(world, id);
    await answer(deferred);
    await dispatchOnce(world, id);
    expect(await stateOf(id)).toMatchObject({ status: 'sent', recipients: ['sent', 'rejected'] });
    expect(world.transport.transmissions).toHaveLength(2);
  });

  test('is sent if the relay accepts it', async () => {
    const { world, id, answer } = await arrangeLostWorker('ada@people.example');
    await cancel(world, id);
    await answer(accepted);
    await dispatchOnce(world, id);
    expect(await stateOf(id)).toMatchObject({ status: 'sent', types: ['message.sent'] });
  });

  test('is sent again if an operator decides so afterwards', async () => {
    const { world, id } = await arrangeLostWorker('ada@people.example');
    await cancel(world, id);
    expect(await dispatchOnce(world, id)).toBe('needs_attention');
    expect(await world.dispatch.resolveAmbiguity(id, { resolution: 'resend' })).toMatchObject({
      hasUnsent: true,
    });
    world.transport.answerWith(async () => deferred);
    expect(await dispatchOnce(world, id)).toBe('deferred');
    world.transport.answerWith(async () => accepted);
    expect(await dispatchOnce(world, id)).toBe('settled');
    expect(await stateOf(id)).toMatchObject({ attempts: ['deferred', 'deferred', 'accepted'] });
  });
});
