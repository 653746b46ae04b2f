import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { DraftEntity } from '../../domain/drafts/draft.entity.ts';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { releaseAllHeldDrafts } from '../../domain/drafts/held-drafts.ts';
import { overdueDrafts } from '../../domain/drafts/overdue-drafts.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { HELD_DETAIL, releaseAllHeldSends } from '../../domain/outbound/held-sends.ts';
import { overdueMessages } from '../../domain/outbound/overdue-sends.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import {
  accepted,
  deferred,
  refused,
  TEST_APPROVAL_MS,
  testUnsubscribeLinks,
} from '../support/mail-services.ts';
import {
  arrangeSending,
  dispatchOnce,
  readMessageState,
  recordOnce,
  type Sending,
} from '../support/outbound-mail.ts';
import { query } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { untilBlocking } from '../support/until-blocking.ts';

const database = useWorkerDatabase();

type Suspended = 'organization' | 'environment' | 'inbox';
const setStatus = (what: Suspended, { inbox }: Pick<Sending, 'inbox'>, status: 'active' | 'suspended') =>
  database.systemTransaction(async ({ db }) => {
    const { id, organizationId, environmentId } = inbox;
    if (what === 'organization')
      await db.updateTable('organizations').set({ status }).where('id', '=', organizationId).execute();
    else if (what === 'environment')
      await db.updateTable('environments').set({ status }).where('id', '=', environmentId).execute();
    else await db.updateTable('inboxes').set({ status }).where('id', '=', id).execute();
  });

const startsOf = (commands: ReturnType<typeof recordingOutbox>['commands'], workflowId: string) =>
  commands.filter(({ start }) => start?.workflowId === workflowId).length;

describe('an accepted message', () => {
  test.each(['organization', 'environment', 'inbox'] as const)(
    'stays queued without an event while its %s is suspended, and is sent once it is reinstated',
    async (what) => {
      const setup = await arrangeSending(database);
      const id = await setup.send('ada@people.example');
      await setStatus(what, setup, 'suspended');
      expect(await dispatchOnce(setup, id)).toBe('held');
      const held = await readMessageState(database, id);
      expect([held.status, held.recipients, held.types]).toEqual(['queued', ['pending'], []]);
      expect(held.message.statusDetail).toContain('suspended');

      // Neither the release nor the reconciler starts it while it is suspended.
      const { outbox, commands } = recordingOutbox();
      await query(
        database,
        sql`update messages set updated_at = now() - interval '1 hour', queued_at = now() - interval '3 days' where id = ${id}`,
      );
      await releaseAllHeldSends(database, outbox);
      const overdue = await overdueMessages(database, setup.outcomes).take(10_000);
      expect(overdue.map(({ start }) => start.workflowId)).not.toContain(sendMessageWorkflowId(id));
      expect(startsOf(commands, sendMessageWorkflowId(id))).toBe(0);

      await setStatus(what, setup, 'active');
      await Promise.all([releaseAllHeldSends(database, outbox), releaseAllHeldSends(database, outbox)]);
      expect(startsOf(commands, sendMessageWorkflowId(id))).toBe(1);
      setup.transport.answerWith(async () => deferred);
      expect(await dispatchOnce(setup, id)).toBe('deferred');
      // Its time to retry begins with the release.
      expect((await readMessageState(database, id)).status).toBe('deferred');
      setup.transport.answerWith(async () => accepted);
      await dispatchOnce(setup, id);
      expect((await readMessageState(database, id)).types).toEqual(['message.sent']);
    },
  );

  test('that is deferred stays deferred; one of a deleted inbox is rejected', async () => {
    const setup = await arrangeSending(database);
    const id = await setup.send('ada@people.example');
    setup.transport.answerWith(async () => deferred);
    await dispatchOnce(setup, id);
    await setStatus('inbox', setup, 'suspended');
    expect(await dispatchOnce(setup, id)).toBe('held');
    expect((await readMessageState(database, id)).status).toBe('deferred');
    await database.db
      .updateTable('inboxes')
      .set({ deleted_at: new Date() })
      .where('id', '=', setup.inbox.id)
      .execute();
    expect(await dispatchOnce(setup, id)).toBe('finished');
    expect((await readMessageState(database, id)).types).toEqual(['message.rejected']);
  });
});

describe('a message that is held', () => {
  test('while another worker is between the gate and its first attempt is not sent by that one', async () => {
    const setup = await arrangeSending(database);
    const id = await setup.send('ada@people.example');
    expect(await setup.dispatch.prepare(id)).toBe('allowed');
    const stalled = await database.systemTransaction(async (transaction) => {
      const { db } = transaction;
      await db.selectFrom('messages').select('id').where('id', '=', id).forUpdate().execute();
      const transmitting = setup.dispatch.transmit(id, () => false);
      await untilBlocking(transaction);
      // A second worker has held the message.
      await setStatus('inbox', setup, 'suspended');
      await db.updateTable('messages').set({ status_detail: HELD_DETAIL }).where('id', '=', id).execute();
      return { transmitting };
    });
    await stalled.transmitting;
    expect(setup.transport.transmissions).toEqual([]);
    expect(await recordOnce(setup, id)).toBe('deferred');
    expect((await readMessageState(database, id)).message.statusDetail).toBe(HELD_DETAIL);
    expect(await dispatchOnce(setup, id)).toBe('held');
  });

  test('stays held when a report about another recipient arrives after the retry window', async () => {
    const setup = await arrangeSending(database);
    setup.transport.answerWith(async ({ recipient }) => (recipient.startsWith('ada') ? accepted : deferred));
    const id = await setup.send('ada@people.example', 'bob@people.example');
    await dispatchOnce(setup, id);
    await setStatus('inbox', setup, 'suspended');
    expect(await dispatchOnce(setup, id)).toBe('held');
    await database.db
      .updateTable('messages')
      .set({ queued_at: new Date(Date.now() - 3 * 86_400_000) })
      .where('id', '=', id)
      .execute();
    await database.systemTransaction((transaction) =>
      setup.outcomes.apply(transaction, id, [
        { position: 0, kind: 'delivered', statusCode: '2.0.0', diagnosticCode: null },
      ]),
    );
    expect(await readMessageState(database, id)).toMatchObject({
      status: 'deferred',
      recipients: ['delivered', 'deferred'],
      message: { statusDetail: HELD_DETAIL },
    });
    await setStatus('inbox', setup, 'active');
    const { outbox, commands } = recordingOutbox();
    await releaseAllHeldSends(database, outbox);
    expect(startsOf(commands, sendMessageWorkflowId(id))).toBe(1);
    setup.transport.answerWith(async () => accepted);
    expect(await dispatchOnce(setup, id)).toBe('settled');
  });
});

test('a scheduled draft stays scheduled while its organization is suspended, and is sent once it is reinstated', async () => {
  const setup = await arrangeSending(database);
  const { outbox, commands } = recordingOutbox();
  const drafts = createDraftService({
    notifications: createNotificationService({ outbox }),
    approvalMs: TEST_APPROVAL_MS,
    unsubscribeLinks: testUnsubscribeLinks,
    database,
    outbox,
    events: createWebhookEvents({ outbox }),
  });
  const { draft } = await drafts.create(setup.scope, setup.inbox.id, {
    to: [{ email: 'ada@people.example' }],
    textBody: 'x',
    sendAt: new Date(Date.now() - 120_000),
  });
  const { workflowId = '' } = commands[0]?.start ?? {};
  await setStatus('organization', setup, 'suspended');
  expect(await drafts.sendDue(draft.id, draft.scheduleVersion)).toBe('held');
  const read = () =>
    database.db
      .selectFrom('drafts')
      .select(columnsOf(DraftEntity))
      .where('id', '=', draft.id)
      .executeTakeFirst();
  expect(await read()).toMatchObject({
    sendStatus: 'scheduled',
    sendError: expect.stringContaining('suspended'),
  });
  await releaseAllHeldDrafts(database, outbox);
  const overdue = await overdueDrafts(database, drafts).take(10_000);
  expect(overdue.map(({ start }) => start.workflowId)).not.toContain(workflowId);
  expect(startsOf(commands, workflowId)).toBe(1);
  await setStatus('organization', setup, 'active');
  await releaseAllHeldDrafts(database, outbox);
  await releaseAllHeldDrafts(database, outbox);
  expect(startsOf(commands, workflowId)).toBe(2);
  expect(await read()).toMatchObject({ sendStatus: 'scheduled', sendError: null });
  expect(await drafts.sendDue(draft.id, draft.scheduleVersion)).toBe('sent');
  expect(await read()).toBeUndefined();
});

describe('recipients that are refused among others', () => {
  test('are reported as a transient bounce, without a suppression', async () => {
    const setup = await arrangeSending(database);
    setup.transport.answerWith(async ({ recipient }) =>
      recipient.startsWith('bad') ? { ...refused, scope: 'message' } : accepted,
    );
    const id = await setup.send('good@people.example', 'bad@people.example');
    await dispatchOnce(setup, id);
    const { types, events, recipients } = await readMessageState(database, id);
    expect(recipients).toEqual(['sent', 'rejected']);
    expect(types.sort()).toEqual(['message.bounced', 'message.sent']);
    expect(events.find(({ type }) => type === 'message.bounced')?.data).toMatchObject({
      message_id: id,
      bounce_type: 'Transient',
      bounce_sub_type: 'General',
      bounced_recipients: [{ email_address: 'bad@people.example' }],
    });
    const suppressed = await query(
      database,
      sql`select from suppressions where org_id = ${setup.inbox.organizationId}`,
    );
    expect(suppressed).toEqual([]);
  });

  test('are rejected if nothing of the message leaves', async () => {
    const setup = await arrangeSending(database);
    setup.transport.answerWith(async () => ({ ...refused, scope: 'message' }));
    const id = await setup.send('one@people.example', 'two@people.example');
    await dispatchOnce(setup, id);
    const { types, status } = await readMessageState(database, id);
    expect([status, types]).toEqual(['rejected', ['message.rejected']]);
  });
});
