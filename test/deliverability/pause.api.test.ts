import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { InboxEntity } from '../../domain/inboxes/inbox.entity.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { json } from '../../platform/database/json.ts';
import { lowestIdAt, newId } from '../../platform/ids.ts';
import { TEST_APPROVAL_MS, testUnsubscribeLinks } from '../support/mail-services.ts';
import { createKey } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce, readMessageState, type Sending } from '../support/outbound-mail.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();

const arrange = () => arrangeSending(app.worker);
const inboxOf = ({ inbox }: Sending) =>
  app.worker.db
    .selectFrom('inboxes')
    .select(columnsOf(InboxEntity))
    .where('id', '=', inbox.id)
    .executeTakeFirstOrThrow();

/** Inserts messages that were sent earlier. */
async function sentBefore(
  world: Sending,
  count: number,
  {
    email = 'ada@people.example',
    madeAt,
    perMail = 1,
  }: { email?: string; madeAt?: Date; perMail?: number } = {},
): Promise<string[]> {
  const first = await world.send(`${newId('message')}@people.example`);
  const ids = [first, ...Array.from({ length: count - 1 }, () => createIdAt(madeAt))];
  await app.worker.systemTransaction(async ({ db }) => {
    const template = await db
      .updateTable('messages')
      .set({ status: 'sent' })
      .where('id', '=', first)
      .returning(columnsOf(MessageEntity))
      .executeTakeFirstOrThrow();
    await db
      .updateTable('message_recipients')
      .set({ status: 'sent' })
      .where('message_id', '=', first)
      .execute();
    for (const id of ids.slice(1)) {
      const { organizationId, environmentId, inboxId, threadId, fromEmail, to, queuedAt } = template;
      await db
        .insertInto('messages')
        .values({
          id,
          org_id: organizationId,
          env_id: environmentId,
          inbox_id: inboxId,
          thread_id: threadId,
          from_email: fromEmail,
          to: json(to),
          queued_at: queuedAt,
          direction: 'outbound',
          status: 'sent',
          subject: '',
          headers: json({}),
          cc: json([]),
          bcc: json([]),
          reply_to: json([]),
        })
        .execute();
    }
    const { organizationId } = template;
    for (const messageId of ids) {
      for (let position = messageId === first ? 1 : 0; position < perMail; position += 1)
        await db
          .insertInto('message_recipients')
          .values({
            message_id: messageId,
            position,
            org_id: organizationId,
            field: 'to',
            email,
            status: 'sent',
          })
          .execute();
    }
  });
  return ids;
}

/** An id starts with ten characters for its time, followed by sixteen random characters. */
function createIdAt(time: Date | undefined): string {
  const id = newId('message');
  return time ? `${lowestIdAt('message', time).slice(0, 14)}${id.slice(14)}` : id;
}

const report = (world: Sending, id: string, kind: 'bounced' | 'complained', statusCode: string) =>
  app.worker.systemTransaction((transaction) =>
    world.outcomes.apply(transaction, id, [{ position: 0, kind, statusCode, diagnosticCode: 'reported' }]),
  );

describe('automatic pause', () => {
  test('pauses an inbox when more than 5% of at least 50 sends bounce because of invalid addresses', async () => {
    const world = await arrange();
    const ids = await sentBefore(world, 50);
    for (const id of ids.slice(0, 2)) await report(world, id, 'bounced', '5.1.1');
    expect(await inboxOf(world)).toMatchObject({ sendPaused: false });
    // Rejections for policy or a full mailbox do not mean that the address is invalid.
    for (const [index, status] of ['5.7.1', '5.2.2', '4.4.7', '5.3.4'].entries())
      await report(world, ids[10 + index] ?? '', 'bounced', status);
    expect(await inboxOf(world)).toMatchObject({ sendPaused: false });
    await report(world, ids[2] ?? '', 'bounced', '5.1.1');
    expect(await inboxOf(world)).toMatchObject({
      sendPaused: true,
      sendPausedReason:
        '3 of 50 messages bounced because of an invalid address in the last 7 days: more than 5%',
    });
  });

  test('pauses an inbox on the third of three concurrent bounces', async () => {
    const world = await arrange();
    const ids = await sentBefore(world, 50);
    await Promise.all(ids.slice(0, 3).map((id) => report(world, id, 'bounced', '5.1.1')));
    expect(await inboxOf(world)).toMatchObject({ sendPaused: true });
  });

  test('pauses an inbox on two complaints, at least 500 sends and more than 0.1%', async () => {
    const world = await arrange();
    const ids = await sentBefore(world, 10, { perMail: 50 });
    await report(world, ids[0] ?? '', 'complained', '2.0.0');
    expect(await inboxOf(world)).toMatchObject({ sendPaused: false });
    await report(world, ids[1] ?? '', 'complained', '2.0.0');
    expect(await inboxOf(world)).toMatchObject({
      sendPaused: true,
      sendPausedReason: '2 of 500 messages were reported as spam in the last 7 days: more than 0.1%',
    });
  });

  test('ignores the simulator, both as outcomes and as sends', async () => {
    const world = await arrange();
    const simulated = await sentBefore(world, 51, { email: 'bounced@simulator.mail.test' });
    for (const id of simulated.slice(1, 10)) await report(world, id, 'bounced', '5.1.1');
    expect(await inboxOf(world)).toMatchObject({ sendPaused: false });
    const ids = await sentBefore(world, 10);
    for (const id of ids.slice(1)) await report(world, id, 'bounced', '5.1.1');
    expect(await inboxOf(world)).toMatchObject({ sendPaused: false });
  });

  test('ignores outcomes older than 7 days', async () => {
    const world = await arrange();
    const old = await sentBefore(world, 60, { madeAt: new Date(Date.now() - 8 * 24 * 3_600_000) });
    for (const id of old.slice(1, 30)) await report(world, id, 'bounced', '5.1.1');
    expect(await inboxOf(world)).toMatchObject({ sendPaused: false });
  });
});

describe('a paused inbox', () => {
  const pause = (world: Sending) =>
    app.worker.db
      .updateTable('inboxes')
      .set({ send_paused: true, send_paused_reason: 'too many' })
      .where('id', '=', world.inbox.id)
      .execute();
  const keyOf = (world: Sending) => createKey(app.worker, { organizationId: world.scope.organizationId });

  test('refuses sends with account_paused, the reason and the specified event', async () => {
    const world = await arrange();
    await pause(world);
    const { token } = await keyOf(world);
    const response = await app.call(`/inboxes/${world.inbox.id}/messages`, {
      method: 'POST',
      token,
      body: { to: [{ email: 'ada@people.example' }], subject: 'Hello' },
    });
    expect(expectProblem(response, 'message_rejected')).toMatchObject({ rejection_reason: 'account_paused' });
    const events = (await query<{ type: string; data: object }>(
      app.worker,
      sql`select type, data from events where org_id = ${world.scope.organizationId}`,
    )) as { type: string; data: object }[];
    expect(events).toEqual([
      {
        type: 'message.rejected',
        data: {
          inbox_id: world.inbox.id,
          from_address: world.inbox.email,
          to_addresses: ['ada@people.example'],
          subject: 'Hello',
          rejection_reason: 'account_paused',
          rejection_detail: 'Sending from this inbox is paused: too many.',
          rejected_at: expect.any(String),
        },
      },
    ]);
    expect((await app.call(`/inboxes/${world.inbox.id}`, { token })).json()).toMatchObject({
      send_paused: true,
      send_paused_reason: 'too many',
    });
  });

  test('rejects messages that were queued before', async () => {
    const world = await arrange();
    const id = await world.send('ada@people.example');
    await pause(world);
    await expect(dispatchOnce(world, id)).resolves.toBe('finished');
    const state = await readMessageState(app.worker, id);
    expect(state).toMatchObject({ status: 'rejected', types: ['message.rejected'] });
    expect(state.events[0]?.data).toMatchObject({ rejection_reason: 'account_paused' });
  });

  test('does not send a scheduled draft and records the reason on it', async () => {
    const world = await arrange();
    const drafts = createDraftService({
      notifications: createNotificationService(recordingOutbox()),
      approvalMs: TEST_APPROVAL_MS,
      unsubscribeLinks: testUnsubscribeLinks,
      database: app.worker,
      outbox: recordingOutbox().outbox,
      events: createWebhookEvents({ outbox: recordingOutbox().outbox }),
    });
    const { draft } = await drafts.create(world.scope, world.inbox.id, {
      to: [{ email: 'ada@people.example' }],
      sendAt: new Date(Date.now() - 1_000),
    });
    await pause(world);
    await expect(drafts.sendDue(draft.id, draft.scheduleVersion)).resolves.toBe('refused');
    const { token } = await keyOf(world);
    expect((await app.call(`/drafts/${draft.id}`, { token })).json()).toMatchObject({
      send_status: 'failed',
      send_error: 'message_rejected: Sending from this inbox is paused: too many.',
    });
    expect((await app.call(`/inboxes/${world.inbox.id}/messages`, { token })).json()).toMatchObject({
      data: [],
    });
    const events = await app.worker.db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('inbox_id', '=', world.inbox.id)
      .execute();
    expect(events).toMatchObject([
      { type: 'message.rejected', data: { rejection_reason: 'account_paused' } },
    ]);
  });

  test('is resumed by a key with inboxes:manage, not by an agent’s key, and old outcomes do not pause it again', async () => {
    const world = await arrange();
    const ids = await sentBefore(world, 60);
    for (const id of ids.slice(0, 4)) await report(world, id, 'bounced', '5.1.1');
    expect(await inboxOf(world)).toMatchObject({ sendPaused: true });
    const path = `/inboxes/${world.inbox.id}/resume`;
    const agent = await createKey(app.worker, {
      organizationId: world.scope.organizationId,
      permissions: ['inboxes:write'],
    });
    expectProblem(await app.call(path, { method: 'POST', token: agent.token }), 'permission_denied');
    const { token } = await keyOf(world);
    const resumed = await app.call(path, { method: 'POST', token });
    expect(resumed.statusCode).toBe(200);
    expect(resumed.json()).toMatchObject({ send_paused: false, send_paused_reason: null });
    for (const id of ids.slice(4, 10)) await report(world, id, 'bounced', '5.1.1');
    expect(await inboxOf(world)).toMatchObject({ sendPaused: false });
    const later = await sentBefore(world, 50);
    for (const id of later.slice(1, 4)) await report(world, id, 'bounced', '5.1.1');
    expect(await inboxOf(world)).toMatchObject({ sendPaused: true });
  });
});
