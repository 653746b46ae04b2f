import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { pino } from 'pino';
import { createMaintenanceActivities } from '../../activities/maintenance.activities.ts';
import { DraftEntity } from '../../domain/drafts/draft.entity.ts';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { overdueDrafts } from '../../domain/drafts/overdue-drafts.ts';
import { overdueReceipts } from '../../domain/inbound/overdue-receipts.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { overdueMessages } from '../../domain/outbound/overdue-sends.ts';
import { createSendService } from '../../domain/outbound/send.service.ts';
import { stopSend } from '../../domain/outbound/stop-send.ts';
import { beginAttempt } from '../../domain/outbound/transmit-message.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { newId } from '../../platform/ids.ts';
import { createOutbox } from '../../platform/outbox/outbox.ts';
import type { OutboxCommand } from '../../platform/outbox/outbox-command.ts';
import type { RunDescription, RunStatus, WorkflowGateway } from '../../platform/outbox/workflow-gateway.ts';
import {
  accepted,
  ambiguous,
  createMailServices,
  deferred,
  noApprovals,
  ScriptedTransport,
  TEST_APPROVAL_MS,
  testUnsubscribeLinks,
} from '../support/mail-services.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { countRows } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { testScope } from '../support/test-scope.ts';

const logger = pino({ level: 'silent' });
const HOUR_AGO = () => new Date(Date.now() - 3_600_000);

const database = useWorkerDatabase();

/** A fake Temporal with the given runs, which can be down. */
class FakeTemporal implements WorkflowGateway {
  readonly dispatched: OutboxCommand[] = [];
  readonly statuses = new Map<string, RunStatus>();
  down = false;
  closedAt: Date | null = null;

  async dispatch(command: OutboxCommand): Promise<void> {
    if (this.down) throw new Error('Temporal is down');
    this.dispatched.push(command);
  }

  async describe(workflowId: string): Promise<RunDescription> {
    return { status: this.statuses.get(workflowId) ?? 'NOT_FOUND', closedAt: this.closedAt };
  }

  started(workflowId: string): number {
    return this.dispatched.filter(({ start }) => start?.workflowId === workflowId).length;
  }
}

let temporal: FakeTemporal;
let restoredAt: Date | null;
beforeEach(() => {
  temporal = new FakeTemporal();
  restoredAt = null;
});

async function arrange({ cc = [] }: { cc?: { email: string }[] } = {}) {
  const organization = await createOrganization(database);
  const inbox = await createInbox(database, organization);
  const outbox = createOutbox({ database, workflows: temporal, logger });
  const transport = new ScriptedTransport(async () => accepted);
  const { dispatch, outcomes } = createMailServices(database, transport, { outbox });
  const events = createWebhookEvents({ outbox });
  const drafts = createDraftService({
    notifications: createNotificationService({ outbox }),
    approvalMs: TEST_APPROVAL_MS,
    unsubscribeLinks: testUnsubscribeLinks,
    database,
    outbox,
    events,
  });
  const sends = createSendService({
    drafts: noApprovals,
    unsubscribeLinks: testUnsubscribeLinks,
    database,
    outbox,
    events,
  });
  const { reconcileOverdue } = createMaintenanceActivities({
    recordSweep: async () => undefined,
    outbox,
    workflows: temporal,
    sources: [
      overdueMessages(database, outcomes),
      overdueReceipts(database),
      overdueDrafts(database, drafts),
    ],
    findLastRestore: async () => restoredAt,
    sweeps: {},
    logger,
  });
  const scope = testScope(organization, inbox);
  const content = {
    to: [{ email: 'ada@people.example' }],
    cc,
    bcc: [],
    replyTo: [],
    subject: 'S',
    textBody: 'T',
    htmlBody: null,
    labels: [],
    headers: {},
  };
  return {
    inbox,
    outbox,
    events,
    transport,
    dispatch,
    drafts,
    scope,
    content,
    reconcile: () => new MockActivityEnvironment().run(reconcileOverdue),
    /** A message whose run was lost an hour ago. */
    async lostMessage(): Promise<string> {
      const { message } = await sends.send(scope, inbox.id, content);
      await outbox.drain();
      temporal.dispatched.length = 0;
      await age(message.id);
      return message.id;
    },
    send: async () => (await sends.send(scope, inbox.id, content)).message.id,
  };
}

const age = (id: string) =>
  database.db
    .updateTable('messages')
    .set({ updated_at: HOUR_AGO(), reconciled_at: null })
    .where('id', '=', id)
    .execute();

const statusOf = async (id: string) =>
  (
    await database.db
      .selectFrom('messages')
      .select(columnsOf(MessageEntity))
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
  ).status;

describe('the outbox', () => {
  test('is dispatched immediately and emptied', async () => {
    const { send, outbox, inbox } = await arrange();
    const id = await send();
    await outbox.drain();
    expect(temporal.started(`send/${id}`)).toBe(1);
    expect(await rowsOf(inbox.organizationId)).toBe(0);
  });

  test('keeps commands that Temporal did not accept, and the sweep dispatches them', async () => {
    const { send, outbox, inbox, reconcile } = await arrange();
    temporal.down = true;
    const id = await send();
    await outbox.drain();
    expect(await rowsOf(inbox.organizationId)).toBe(1);
    await due(inbox.organizationId);
    await reconcile();
    expect(await rowsOf(inbox.organizationId)).toBe(1);

    temporal.down = false;
    await due(inbox.organizationId);
    await reconcile();
    expect(temporal.started(`send/${id}`)).toBe(1);
    expect(await rowsOf(inbox.organizationId)).toBe(0);
  });

  test('dispatches each command once with two concurrent sweeps', async () => {
    const { send, outbox, inbox, reconcile } = await arrange();
    temporal.down = true;
    const id = await send();
    await outbox.drain();
    temporal.down = false;
    await due(inbox.organizationId);
    await Promise.all([reconcile(), reconcile()]);
    expect(temporal.started(`send/${id}`)).toBe(1);
  });

  const rowsOf = (organizationId: string) =>
    countRows(database.db.selectFrom('outbox').select('id').where('org_id', '=', organizationId));
  const due = (organizationId: string) =>
    database.db
      .updateTable('outbox')
      .set({ available_at: HOUR_AGO() })
      .where('org_id', '=', organizationId)
      .execute();
});

describe('the reconciler', () => {
  test.each<[RunStatus, string]>([
    ['NOT_FOUND', 'no run was found'],
    ['FAILED', 'with the status FAILED'],
    ['TIMED_OUT', 'with the status TIMED_OUT'],
  ])('restarts the run of a message if it is %s, and the run says so', async (status, recovery) => {
    const { lostMessage, reconcile } = await arrange();
    const id = await lostMessage();
    temporal.statuses.set(`send/${id}`, status);
    await reconcile();
    expect(temporal.started(`send/${id}`)).toBe(1);
    expect(temporal.dispatched.find(({ start }) => start?.workflowId === `send/${id}`)?.start).toMatchObject({
      recovery: expect.stringContaining(recovery),
      summary: expect.not.stringContaining('reconciler'),
    });
    expect(await statusOf(id)).toBe('queued');
  });

  test.each([
    { closed: 'before', starts: [true] },
    { closed: 'after', starts: [] },
  ])('a row whose run completed $closed a restore is restarted: $starts', async ({ closed, starts }) => {
    const { lostMessage, reconcile } = await arrange();
    const id = await lostMessage();
    temporal.statuses.set(`send/${id}`, 'COMPLETED');
    temporal.closedAt = HOUR_AGO();
    restoredAt = new Date(temporal.closedAt.getTime() + (closed === 'before' ? 1 : -1));
    await reconcile();
    const started = temporal.dispatched.flatMap(({ start }) =>
      start?.workflowId === `send/${id}` ? [start.replacesCompleted] : [],
    );
    expect(started).toEqual(starts);
  });

  test('leaves a running workflow alone and does not check it again immediately', async () => {
    const { lostMessage, reconcile } = await arrange();
    const id = await lostMessage();
    temporal.statuses.set(`send/${id}`, 'RUNNING');
    await reconcile();
    temporal.statuses.set(`send/${id}`, 'NOT_FOUND');
    await reconcile();
    expect(temporal.started(`send/${id}`)).toBe(0);
  });

  test.each<RunStatus>(['TERMINATED', 'CANCELLED'])('cancels a message whose run is %s', async (status) => {
    const { lostMessage, reconcile } = await arrange();
    const id = await lostMessage();
    temporal.statuses.set(`send/${id}`, status);
    await reconcile();
    expect(await statusOf(id)).toBe('canceled');
    expect(temporal.started(`send/${id}`)).toBe(0);
  });

  test('records a send that was already transmitted when its run was terminated, instead of canceling it', async () => {
    const { lostMessage, reconcile, dispatch } = await arrange();
    const id = await lostMessage();
    await dispatch.prepare(id);
    await dispatch.transmit(id, () => false);
    await age(id);
    temporal.statuses.set(`send/${id}`, 'TERMINATED');
    await reconcile();
    expect(await statusOf(id)).toBe('sent');
  });

  test('asks an operator about a transmission whose worker ended before its run was terminated', async () => {
    const { lostMessage, reconcile, dispatch } = await arrange();
    const id = await lostMessage();
    await dispatch.prepare(id);
    await beginAttempt(database, { id }, 0, { marksSending: true });
    temporal.statuses.set(`send/${id}`, 'TERMINATED');
    const sweep = async () => {
      await age(id);
      await reconcile();
      return statusOf(id);
    };
    // It may still be in the transaction with the relay.
    expect(await sweep()).toBe('deferred');
    await database.db
      .updateTable('send_attempts')
      .set({ started_at: HOUR_AGO() })
      .where('message_id', '=', id)
      .execute();
    expect(temporal.started(`send/${id}`)).toBe(0);
    expect(await sweep()).toBe('needs_attention');
    expect(temporal.started(`send/${id}`)).toBe(1);
  });

  test.each<RunStatus>(['TERMINATED', 'CANCELLED'])(
    'cancels a message that was stopped after a failure and whose run is %s',
    async (status) => {
      const { lostMessage, reconcile, dispatch, events } = await arrange();
      const id = await lostMessage();
      await dispatch.prepare(id);
      await stopSend(database, events, id, { reason: 'Sending failed repeatedly.', isFinal: false });
      await age(id);
      temporal.statuses.set(`send/${id}`, status);
      await reconcile();
      expect(await statusOf(id)).toBe('canceled');
      expect(temporal.started(`send/${id}`)).toBe(0);
    },
  );

  test('cancels the unsent part of a message whose run was terminated, and starts it again for an unknown outcome', async () => {
    const { lostMessage, reconcile, dispatch, transport } = await arrange({
      cc: [{ email: 'bob@people.example' }],
    });
    transport.answerWith(async ({ recipient }) => (recipient.startsWith('ada') ? ambiguous : deferred));
    const id = await lostMessage();
    await dispatch.prepare(id);
    await dispatch.transmit(id, () => false);
    await dispatch.record(id);
    await age(id);
    temporal.statuses.set(`send/${id}`, 'TERMINATED');
    await reconcile();
    expect(await statusOf(id)).toBe('needs_attention');
    const recipients = await database.db
      .selectFrom('message_recipients')
      .select('status')
      .where('message_id', '=', id)
      .orderBy('position')
      .execute();
    expect(recipients.map((recipient) => recipient.status)).toEqual(['pending', 'rejected']);
    expect(temporal.started(`send/${id}`)).toBe(1);
  });

  test.each<{ status: RunStatus; becomes: string; starts: number }>([
    { status: 'RUNNING', becomes: 'deferred', starts: 0 },
    { status: 'NOT_FOUND', becomes: 'deferred', starts: 1 },
    { status: 'TERMINATED', becomes: 'canceled', starts: 0 },
  ])('a deferred message whose run is $status becomes $becomes', async ({ status, becomes, starts }) => {
    const { lostMessage, reconcile, dispatch, transport } = await arrange();
    transport.answerWith(async () => deferred);
    const id = await lostMessage();
    await dispatch.prepare(id);
    await dispatch.transmit(id, () => false);
    await dispatch.record(id);
    await age(id);
    temporal.statuses.set(`send/${id}`, status);
    await reconcile();
    expect(await statusOf(id)).toBe(becomes);
    expect(temporal.started(`send/${id}`)).toBe(starts);
  });

  test('restarts processing of a received message even after an operator ended its run', async () => {
    const { inbox, reconcile } = await arrange();
    const id = newId('receipt');
    await database.db
      .insertInto('inbound_receipts')
      .values({
        id,
        org_id: inbox.organizationId,
        env_id: inbox.environmentId,
        inbox_id: inbox.id,
        kind: 'mail',
        message_id: newId('message'),
        raw_key: 'raw/x',
        size_bytes: 1,
        sha256: Buffer.alloc(32),
        mail_from: '',
        rcpt_to: inbox.email,
        client_ip: '192.0.2.1',
        received_at: HOUR_AGO(),
      })
      .execute();
    temporal.statuses.set(`inbound/${id}`, 'TERMINATED');
    await reconcile();
    expect(temporal.started(`inbound/${id}`)).toBe(1);
    const restarted = temporal.dispatched.find(({ start }) => start?.workflowId === `inbound/${id}`);
    expect(restarted?.start?.recovery).toContain('with the status TERMINATED');
  });

  test('restarts the lost run of a scheduled draft, and unschedules the draft of a terminated run', async () => {
    const { drafts, scope, inbox, content, reconcile, outbox } = await arrange();
    const { draft: lost } = await drafts.create(scope, inbox.id, { ...content, sendAt: HOUR_AGO() });
    const { draft: stopped } = await drafts.create(scope, inbox.id, { ...content, sendAt: HOUR_AGO() });
    await outbox.drain();
    temporal.dispatched.length = 0;
    temporal.statuses.set(`scheduled/${stopped.id}/1`, 'TERMINATED');
    await reconcile();
    expect(temporal.started(`scheduled/${lost.id}/1`)).toBe(1);
    expect(temporal.started(`scheduled/${stopped.id}/1`)).toBe(0);
    const row = await database.db
      .selectFrom('drafts')
      .select(columnsOf(DraftEntity))
      .where('id', '=', stopped.id)
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({
      sendStatus: 'draft',
      sendAt: null,
      sendError: expect.stringContaining('operator'),
    });
  });

  test('signals a run again that waits past its draft’s time', async () => {
    const { drafts, scope, inbox, content, reconcile, outbox } = await arrange();
    const { draft } = await drafts.create(scope, inbox.id, { ...content, sendAt: HOUR_AGO() });
    await outbox.drain();
    temporal.dispatched.length = 0;
    temporal.statuses.set(`scheduled/${draft.id}/1`, 'RUNNING');
    await reconcile();
    expect(temporal.dispatched).toContainEqual({
      signal: {
        workflowId: `scheduled/${draft.id}/1`,
        signalName: 'reschedule',
        args: [draft.sendAt?.toISOString(), 1],
      },
    });
  });

  test('unschedules a draft whose run an operator ended long before its time', async () => {
    const { drafts, scope, inbox, content, reconcile, outbox } = await arrange();
    const { draft } = await drafts.create(scope, inbox.id, {
      ...content,
      sendAt: new Date(Date.now() + 90 * 86_400_000),
    });
    await outbox.drain();
    await database.db
      .updateTable('drafts')
      .set({ updated_at: HOUR_AGO() })
      .where('id', '=', draft.id)
      .execute();
    temporal.statuses.set(`scheduled/${draft.id}/1`, 'TERMINATED');
    await reconcile();
    const row = await database.db
      .selectFrom('drafts')
      .select(columnsOf(DraftEntity))
      .where('id', '=', draft.id)
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({
      sendStatus: 'draft',
      sendAt: null,
      sendError: expect.stringContaining('operator'),
    });
  });

  test('runs every sweep even if one fails, then fails', async () => {
    const done: string[] = [];
    const { reconcileOverdue } = createMaintenanceActivities({
      recordSweep: async () => undefined,
      outbox: { sweep: async () => 0 },
      findLastRestore: async () => null,
      workflows: temporal,
      sources: [],
      sweeps: {
        objects: async () => Promise.reject(new Error('Storage refuses.')),
        events: async () => done.push('events'),
      },
      logger,
    });
    await expect(new MockActivityEnvironment().run(reconcileOverdue)).rejects.toThrow('Storage refuses.');
    expect(done).toEqual(['events']);
  });

  test('leaves the rest of a flood in the outbox to the next run', async () => {
    const startedAt = Date.now();
    let minutes = 0;
    const now = jest.spyOn(Date, 'now').mockImplementation(() => startedAt + minutes * 60_000);
    const { reconcileOverdue } = createMaintenanceActivities({
      recordSweep: async () => undefined,
      outbox: {
        sweep: async (limit) => {
          minutes += 1;
          return limit;
        },
      },
      findLastRestore: async () => null,
      workflows: temporal,
      sources: [],
      sweeps: { events: async () => 7 },
      logger,
    });
    try {
      expect(await new MockActivityEnvironment().run(reconcileOverdue)).toEqual({ outbox: 100, events: 7 });
    } finally {
      now.mockRestore();
    }
  });

  test('heartbeats while a sweep takes long, so that no second attempt does the same work beside it', async () => {
    const environment = new MockActivityEnvironment({ heartbeatTimeoutMs: 1_000 });
    const { reconcileOverdue } = createMaintenanceActivities({
      recordSweep: async () => undefined,
      outbox: { sweep: async () => 0 },
      findLastRestore: async () => null,
      workflows: temporal,
      sources: [],
      sweeps: { objects: () => new Promise((done) => environment.once('heartbeat', () => done(1))) },
      logger,
    });
    await expect(environment.run(reconcileOverdue)).resolves.toMatchObject({ objects: 1 });
  });

  test('recovers the other rows if one fails', async () => {
    const world = await arrange();
    const [first, second] = [await world.lostMessage(), await world.lostMessage()];
    await age(first);
    const describeRun = temporal.describe.bind(temporal);
    temporal.describe = async (id) => {
      if (id === `send/${first}`) throw new Error('no answer');
      return describeRun(id);
    };
    await world.reconcile();
    expect(temporal.started(`send/${second}`)).toBe(1);
  });
});
