import { describe, expect, test } from '@jest/globals';
import { CancelledFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { pino } from 'pino';
import { createOutboundActivities } from '../../activities/outbound.activities.ts';
import type { OutcomeService } from '../../domain/outbound/outcome.service.ts';
import { accepted, deferred } from '../support/mail-services.ts';
import { arrangeSending, readMessageState, type Sending } from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

const TO = ['first@people.example', 'second@people.example'];
const logger = pino({ level: 'silent' });

const createEnvironment = () => new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') });

/** The activities, whose outcomes may fail to be recorded. */
function activitiesOf({ sendOptions }: Sending, outcomes: OutcomeService = sendOptions.outcomes) {
  return createOutboundActivities({ ...sendOptions, outcomes, logger });
}

async function arrangePrepared(...to: string[]) {
  const world = await arrangeSending(database);
  const id = await world.send(...to);
  await world.dispatch.prepare(id);
  return { world, id };
}

const stateOf = (id: string) => readMessageState(database, id);

describe('transmitMessage', () => {
  test('records the results and returns what is left to do', async () => {
    const { world, id } = await arrangePrepared(...TO);
    world.transport.answerWith(async ({ recipient }) => (recipient === TO[0] ? accepted : deferred));
    const state = await createEnvironment().run(activitiesOf(world).transmitMessage, { messageId: id });
    expect(state).toEqual({ status: 'deferred', hasUnsent: true, ambiguous: [] });
    expect(await stateOf(id)).toMatchObject({
      status: 'deferred',
      recipients: ['sent', 'deferred'],
      types: ['message.sent'],
    });
  });

  test('returns nothing if recording fails, keeps the results and does not transmit again', async () => {
    const { world, id } = await arrangePrepared(...TO);
    world.transport.answerWith(async ({ recipient }) => (recipient === TO[0] ? accepted : deferred));
    const apply = () => Promise.reject(new Error('The database does not respond.'));
    const { transmitMessage } = activitiesOf(world, { apply });
    expect(await createEnvironment().run(transmitMessage, { messageId: id })).toBeUndefined();
    expect(await stateOf(id)).toMatchObject({
      status: 'sending',
      recipients: ['pending', 'pending'],
      attempts: ['accepted', 'deferred'],
    });
    const { recordSend } = activitiesOf(world);
    expect(await createEnvironment().run(recordSend, { messageId: id })).toMatchObject({ hasUnsent: true });
    expect(await stateOf(id)).toMatchObject({ recipients: ['sent', 'deferred'], types: ['message.sent'] });
    expect(world.transport.transmissions).toHaveLength(2);
  });

  test('fails if it is stopped before the last recipient, so that another worker continues', async () => {
    const { world, id } = await arrangePrepared(...TO);
    const environment = createEnvironment();
    world.transport.answerWith(async () => {
      environment.cancel('WORKER_SHUTDOWN');
      return accepted;
    });
    const { transmitMessage } = activitiesOf(world);
    await expect(environment.run(transmitMessage, { messageId: id })).rejects.toBeInstanceOf(
      CancelledFailure,
    );
    expect(await stateOf(id)).toMatchObject({ status: 'sending', attempts: ['accepted'] });
    const state = await createEnvironment().run(transmitMessage, { messageId: id });
    expect(state).toMatchObject({ status: 'sent', hasUnsent: false });
    expect(world.transport.transmissions.map(({ recipient }) => recipient)).toEqual(TO);
  });

  test('records the last recipient even if it is stopped meanwhile: a retry would transmit to deferred ones again', async () => {
    const { world, id } = await arrangePrepared(...TO.slice(0, 1));
    const environment = createEnvironment();
    world.transport.answerWith(async () => {
      environment.cancel('WORKER_SHUTDOWN');
      return deferred;
    });
    const state = await environment.run(activitiesOf(world).transmitMessage, { messageId: id });
    expect(state).toEqual({ status: 'deferred', hasUnsent: true, ambiguous: [] });
    expect(world.transport.transmissions).toHaveLength(1);
  });
});
