import { describe, expect, test } from '@jest/globals';
import type { Info } from '@temporalio/activity';
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

const createEnvironment = (info: Partial<Info> = {}) =>
  new MockActivityEnvironment(info, { logger: new DefaultLogger('ERROR') });

/** The activities, whose outcomes may fail to be recorded. */
function activitiesOf({ sendOptions }: Sending, outcomes: OutcomeService = sendOptions.outcomes) {
  return createOutboundActivities({ ...sendOptions, outcomes, logger });
}

async function arrangeSend(...to: string[]) {
  const world = await arrangeSending(database);
  return { world, id: await world.send(...to) };
}

const stateOf = (id: string) => readMessageState(database, id);

const suspendInbox = ({ inbox }: Sending, status: 'active' | 'suspended') =>
  database.db.updateTable('inboxes').set({ status }).where('id', '=', inbox.id).execute();

describe('transmitMessage', () => {
  test('runs the send gate first: what it refuses or holds is not transmitted', async () => {
    const { world, id } = await arrangeSend(...TO);
    const { transmitMessage } = activitiesOf(world);
    const transmit = () => createEnvironment().run(transmitMessage, { messageId: id });
    await suspendInbox(world, 'suspended');
    expect(await transmit()).toBe('held');
    expect(await stateOf(id)).toMatchObject({ status: 'queued', attempts: [], types: [] });
    await suspendInbox(world, 'active');
    await database.db
      .updateTable('inboxes')
      .set({ send_paused: true })
      .where('id', '=', world.inbox.id)
      .execute();
    expect(await transmit()).toBe('finished');
    expect(await stateOf(id)).toMatchObject({
      status: 'rejected',
      attempts: [],
      types: ['message.rejected'],
    });
    expect(await transmit()).toBe('finished');
    expect(world.transport.transmissions).toEqual([]);
  });

  test('a retry sends nothing more once the inbox is suspended, but records what the first attempt has sent', async () => {
    const { world, id } = await arrangeSend(...TO, 'third@people.example');
    world.transport.answerWith(async ({ recipient }) => {
      if (recipient === TO[1]) throw new Error('the worker crashes here');
      return accepted;
    });
    const { transmitMessage } = activitiesOf(world);
    const transmit = () => createEnvironment().run(transmitMessage, { messageId: id });
    await expect(transmit()).rejects.toThrow('the worker crashes here');
    await suspendInbox(world, 'suspended');
    world.transport.answerWith(async () => accepted);
    expect(await transmit()).toMatchObject({
      status: 'needs_attention',
      hasUnsent: true,
      ambiguous: [1],
    });
    expect(await stateOf(id)).toMatchObject({
      status: 'needs_attention',
      recipients: ['sent', 'pending', 'pending'],
      attempts: ['accepted', 'ambiguous'],
      types: ['message.sent'],
    });
    // Only a decision can settle the second recipient.
    expect(await transmit()).toMatchObject({ status: 'needs_attention' });
    await world.dispatch.resolveAmbiguity(id, { resolution: 'sent' });
    expect(await transmit()).toBe('held');
    expect(await stateOf(id)).toMatchObject({
      status: 'deferred',
      recipients: ['sent', 'sent', 'pending'],
      message: { statusDetail: expect.stringContaining('suspended') },
    });
    expect(world.transport.transmissions).toHaveLength(2);
    await suspendInbox(world, 'active');
    expect(await transmit()).toMatchObject({ status: 'sent', hasUnsent: false });
    expect(world.transport.transmissions.map(({ recipient }) => recipient)).toEqual([
      ...TO,
      'third@people.example',
    ]);
  });

  test('records the results and returns what is left to do', async () => {
    const { world, id } = await arrangeSend(...TO);
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
    const { world, id } = await arrangeSend(...TO);
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

  test('a retry does not try a recipient again whom it has deferred: the delay has not passed', async () => {
    const { world, id } = await arrangeSend(...TO);
    world.transport.answerWith(async ({ recipient }) => {
      if (recipient === TO[1]) throw new Error('the worker crashes here');
      return deferred;
    });
    const { transmitMessage } = activitiesOf(world);
    const scheduledTimestampMs = Date.now();
    const transmit = (attempt: number) =>
      createEnvironment({ attempt, scheduledTimestampMs }).run(transmitMessage, { messageId: id });
    await expect(transmit(1)).rejects.toThrow('the worker crashes here');
    world.transport.answerWith(async () => accepted);
    expect(await transmit(2)).toMatchObject({ hasUnsent: true, ambiguous: [1] });
    // The worker ended before it could report this, so that there is one more retry.
    expect(await transmit(3)).toMatchObject({ hasUnsent: true, ambiguous: [1] });
    expect(world.transport.transmissions).toHaveLength(2);
    await world.dispatch.resolveAmbiguity(id, { resolution: 'sent' });
    // The next transmission of the run tries again, in its retries too.
    const next = createEnvironment({ attempt: 2, scheduledTimestampMs: Date.now() + 1 });
    expect(await next.run(transmitMessage, { messageId: id })).toMatchObject({ status: 'sent' });
    expect(world.transport.transmissions).toHaveLength(3);
  });

  test('a retry returns the status of a message that is settled already: the send whose completion was lost', async () => {
    const { world, id } = await arrangeSend(...TO);
    const { transmitMessage } = activitiesOf(world);
    const transmit = (attempt: number) =>
      createEnvironment({ attempt, scheduledTimestampMs: Date.now() }).run(transmitMessage, {
        messageId: id,
      });
    const sent = { status: 'sent', hasUnsent: false, ambiguous: [] };
    expect(await transmit(1)).toEqual(sent);
    expect(await transmit(2)).toEqual(sent);
    // Nothing was transmitted in the first attempt of a step.
    expect(await transmit(1)).toBe('finished');
    expect(world.transport.transmissions).toHaveLength(2);
  });

  test('fails if it is stopped before the last recipient, so that another worker continues', async () => {
    const { world, id } = await arrangeSend(...TO);
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
    const { world, id } = await arrangeSend(...TO.slice(0, 1));
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
