import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createHeldWorkService } from '../../domain/administration/held-work.service.ts';
import { DraftEntity } from '../../domain/drafts/draft.entity.ts';
import { awaitSuspensionHolds } from '../../domain/events/event-suspension.ts';
import type { RejectionReason } from '../../domain/events/event-types.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import type { SuspensionTargetType } from '../../domain/suspensions/suspension.entity.ts';
import type { SuspensionTarget } from '../../domain/suspensions/suspension.service.ts';
import { lockDueDelivery } from '../../domain/webhooks/begin-attempt.ts';
import { createBulkJobRunner } from '../../domain/webhooks/bulk-job-runner.ts';
import { HELD_WHILE_SUSPENDED, updateDelivery } from '../../domain/webhooks/delivery-state.ts';
import { restartDeliveries } from '../../domain/webhooks/restart-deliveries.ts';
import { buildSampleData } from '../../domain/webhooks/sample-data.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import { DELIVER_WEBHOOK } from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { accepted, deferred } from '../support/mail-services.ts';
import { createInbox } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce, readMessageState, type Sending } from '../support/outbound-mail.ts';
import { query } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { arrangeSuspensions } from '../support/suspensions.ts';
import { untilBlocking } from '../support/until-blocking.ts';
import { arrangeDeliveries, httpAnswer } from '../support/webhook-deliveries.ts';

const database = useWorkerDatabase();
const LEVELS = ['organization', 'environment', 'inbox'] as const;

let setup: Sending;
let service: ReturnType<typeof arrangeSuspensions>;
beforeEach(async () => {
  setup = await arrangeSending(database);
  service = arrangeSuspensions(database);
});

const targetOf = (type: SuspensionTargetType): SuspensionTarget => {
  const { id, organizationId, environmentId } = setup.inbox;
  return {
    type,
    organizationId,
    id: { organization: organizationId, environment: environmentId, inbox: id }[type],
  };
};
const settle = () => service.settle(setup.inbox.organizationId);
const readDraft = (id: string) =>
  database.db.selectFrom('drafts').select(columnsOf(DraftEntity)).where('id', '=', id).executeTakeFirst();
const createDraft = async (sendAt: Date) => {
  const { draft } = await service.drafts.create(setup.scope, setup.inbox.id, {
    to: [{ email: 'ada@people.example' }],
    textBody: 'x',
    sendAt,
  });
  return draft;
};
const due = () => new Date(Date.now() - 60_000);

describe.each(LEVELS)('a suspended %s', (type) => {
  test('holds messages and due drafts, which leave after reinstatement', async () => {
    const messageId = await setup.send('ada@people.example');
    const draft = await createDraft(due());
    await service.suspend(targetOf(type), 'payment');
    expect(await dispatchOnce(setup, messageId)).toBe('held');
    expect(await service.drafts.sendDue(draft.id, draft.scheduleVersion)).toBe('held');
    expect(await settle()).toMatchObject({ rejected: { messages: 0 }, released: { messages: 0, drafts: 0 } });
    await service.reinstate(targetOf(type), 'payment');
    expect((await settle()).released).toMatchObject({ messages: 1, drafts: 1 });
    expect(service.startsOf(sendMessageWorkflowId(messageId))).toBe(1);
    await dispatchOnce(setup, messageId);
    expect((await readMessageState(database, messageId)).types).toEqual(['message.sent']);
    expect(await service.drafts.sendDue(draft.id, draft.scheduleVersion)).toBe('sent');
    expect((await settle()).released).toEqual({ messages: 0, drafts: 0, deliveries: 0 });
  });

  test('for abuse rejects what has not left, with its events', async () => {
    const queued = await setup.send('ada@people.example');
    const waiting = await setup.send('bob@people.example');
    setup.transport.answerWith(async () => deferred);
    await dispatchOnce(setup, waiting);
    const dueDraft = await createDraft(due());
    const laterDraft = await createDraft(new Date(Date.now() + 3_600_000));
    await service.suspend(targetOf(type), 'abuse');
    expect((await settle()).rejected).toEqual({ messages: 2, drafts: 1, deliveries: 0 });
    for (const id of [queued, waiting]) {
      const { status, recipients } = await readMessageState(database, id);
      expect([status, recipients]).toEqual(['rejected', ['rejected']]);
      // A run that waits for its next attempt wakes up and ends.
      expect(service.commands.some(({ signal }) => signal?.workflowId === sendMessageWorkflowId(id))).toBe(
        true,
      );
      expect(await dispatchOnce(setup, id)).toBe('finished');
    }
    const { events } = await readMessageState(database, queued);
    expect(events.map(({ type: name }) => name)).toEqual(Array(3).fill('message.rejected'));
    for (const { data } of events) expect(data).toMatchObject({ rejection_reason: 'account_paused' });
    expect(await readDraft(dueDraft.id)).toMatchObject({
      sendStatus: 'failed',
      sendError: expect.stringContaining('suspended'),
    });
    expect(await readDraft(laterDraft.id)).toMatchObject({ sendStatus: 'scheduled' });
    // Repeated, as after a crash: nothing happens twice.
    expect((await settle()).rejected).toEqual({ messages: 0, drafts: 0, deliveries: 0 });
    expect((await readMessageState(database, queued)).events).toHaveLength(3);
  });
});

test('a message that comes to the gate during a suspension for abuse is rejected', async () => {
  const messageId = await setup.send('ada@people.example');
  await service.suspend(targetOf('organization'), 'abuse');
  expect(await dispatchOnce(setup, messageId)).toBe('finished');
  expect((await readMessageState(database, messageId)).types).toEqual(['message.rejected']);
});

test('a payment during a suspension for abuse releases nothing, and abuse rejects what payment held', async () => {
  const messageId = await setup.send('ada@people.example');
  await service.suspend(targetOf('organization'), 'payment');
  expect(await dispatchOnce(setup, messageId)).toBe('held');
  await service.suspend(targetOf('inbox'), 'abuse');
  await service.reinstate(targetOf('organization'), 'payment');
  const { rejected, released } = await settle();
  expect([rejected.messages, released.messages]).toEqual([1, 0]);
  expect((await readMessageState(database, messageId)).status).toBe('rejected');
});

test('an abuse suspension of one inbox leaves the mail of another alone', async () => {
  const other = await arrangeSending(database);
  const messageId = await other.send('ada@people.example');
  await service.suspend(targetOf('inbox'), 'abuse');
  await service.settle(other.inbox.organizationId);
  other.transport.answerWith(async () => accepted);
  await dispatchOnce(other, messageId);
  expect((await readMessageState(database, messageId)).status).toBe('sent');
});

test('a recipient in transmission keeps its outcome when the others are rejected', async () => {
  const messageId = await setup.send('one@people.example', 'two@people.example');
  setup.transport.answerWith(async () => {
    if (setup.transport.transmissions.length === 1) {
      await service.suspend(targetOf('organization'), 'abuse');
      await settle();
    }
    return accepted;
  });
  await dispatchOnce(setup, messageId);
  const { status, recipients, types } = await readMessageState(database, messageId);
  expect([status, recipients]).toEqual(['sent', ['sent', 'rejected']]);
  expect(setup.transport.transmissions).toHaveLength(1);
  expect(types.sort()).toEqual(['message.bounced', 'message.sent']);
});

test('a crash in the middle of a release loses nothing and starts nothing twice', async () => {
  const ids = await Promise.all(
    Array.from({ length: 5 }, (_, index) => setup.send(`p${index}@people.example`)),
  );
  const draft = await createDraft(due());
  await service.suspend(targetOf('organization'), 'policy');
  for (const id of ids) await dispatchOnce(setup, id);
  await service.drafts.sendDue(draft.id, draft.scheduleVersion);
  await service.reinstate(targetOf('organization'), 'policy');
  // The worker dies after the first batch has committed.
  const outbox: Outbox = { ...service.outbox, drain: () => Promise.reject(new Error('killed')) };
  const crashing = createHeldWorkService({
    database,
    outbox,
    events: createWebhookEvents({ outbox }),
    drafts: service.drafts,
  });
  await expect(crashing.release(setup.inbox.organizationId, () => undefined)).rejects.toThrow('killed');
  expect(service.startsOf(`scheduled/${draft.id}/1`)).toBe(1);
  await Promise.all([settle(), settle()]);
  for (const id of ids) expect(service.startsOf(sendMessageWorkflowId(id))).toBe(1);
  expect(service.startsOf(`scheduled/${draft.id}/1`)).toBe(2);
});

describe('webhook deliveries', () => {
  const arrange = async (count: number, endpoint: Parameters<typeof arrangeDeliveries>[2] = {}) => {
    const arranged = await arrangeDeliveries(database, count, endpoint);
    const { organizationId, productionEnvironmentId } = arranged.organization;
    const target: SuspensionTarget = { type: 'organization', id: organizationId, organizationId };
    return { ...arranged, organizationId, productionEnvironmentId, target };
  };

  test.each(LEVELS)(
    'wait while the %s of their event is suspended, and keep their attempts',
    async (type) => {
      const { organizationId, productionEnvironmentId, target, ...arranged } = await arrange(2);
      await query(
        database,
        sql`update events set inbox_id = ${setup.inbox.id} where org_id = ${organizationId}`,
      );
      const targets: Record<SuspensionTargetType, SuspensionTarget> = {
        organization: target,
        environment: { type, id: productionEnvironmentId, organizationId },
        inbox: targetOf('inbox'),
      };
      const [first = '', second = ''] = arranged.deliveryIds;
      const failing = arranged.worker(async () => httpAnswer(503));
      await failing.attempt(first, false, 1);
      await service.suspend(targets[type], 'payment');
      let posts = 0;
      const worker = arranged.worker(async () => {
        posts += 1;
        return httpAnswer(200);
      });
      for (const id of [first, second]) await worker.attempt(id, true, 1);
      expect(posts).toBe(0);
      expect(await arranged.deliveries()).toMatchObject([
        { status: 'held', heldFor: 'suspension', attempts: 1, nextAttemptAt: null },
        { status: 'held', heldFor: 'suspension', attempts: 0 },
      ]);
      expect((await service.settle(organizationId)).released.deliveries).toBe(0);
      await service.reinstate(targets[type], 'payment');
      expect((await service.settle(organizationId)).released.deliveries).toBe(2);
      expect(await arranged.deliveries()).toMatchObject([
        { status: 'pending', heldFor: null, attempts: 1, priorAttempts: 0, generation: 2 },
        { status: 'pending', generation: 2 },
      ]);
      for (const id of [first, second]) await worker.attempt(id, true, 2);
      expect(await arranged.deliveries()).toMatchObject([{ status: 'delivered' }, { status: 'delivered' }]);
    },
  );

  test('that are held at the moment of reinstatement are released by its run', async () => {
    const { organizationId, target, ...arranged } = await arrange(1);
    const [id = ''] = arranged.deliveryIds;
    await service.suspend(target);
    let reinstated: Promise<unknown> = Promise.resolve();
    await database.systemTransaction(async ({ db }) => {
      expect(await lockDueDelivery(db, id)).toMatchObject({ ownerHold: 'suspension' });
      reinstated = service.reinstate(target).then(() => service.settle(organizationId));
      // It waits for this transaction; otherwise its run would end before the delivery is held.
      await Promise.race([untilBlocking({ db }), reinstated]);
      await updateDelivery(db, id, HELD_WHILE_SUSPENDED);
    });
    await reinstated;
    expect(await arranged.deliveries()).toMatchObject([{ status: 'pending', heldFor: null }]);
  });

  describe('of events recorded during a suspension', () => {
    const arrangeEvents = async () => {
      const arranged = await arrange(0);
      const events = createWebhookEvents({ outbox: service.outbox });
      const inbox = await createInbox(database, arranged.organization);
      await query(
        database,
        sql`update webhook_endpoints set events = '{message.received,message.rejected}'
        where id = ${arranged.endpointId} returning id`,
      );
      const { organizationId, productionEnvironmentId: environmentId } = arranged;
      const record = (transaction: Transaction) =>
        events.record(transaction, {
          organizationId,
          environmentId,
          inboxId: inbox.id,
          type: 'message.received',
          data: buildSampleData('message.received', { inboxId: inbox.id, time: new Date() }),
        });
      const recordRefusal = (reason: RejectionReason) => (transaction: Transaction) =>
        events.record(transaction, {
          organizationId,
          environmentId,
          inboxId: inbox.id,
          type: 'message.rejected',
          data: {
            ...buildSampleData('message.rejected', { inboxId: inbox.id, time: new Date() }),
            rejection_reason: reason,
          },
        });
      const targets: Record<SuspensionTargetType, SuspensionTarget> = {
        organization: arranged.target,
        environment: { type: 'environment', id: environmentId, organizationId },
        inbox: { type: 'inbox', id: inbox.id, organizationId },
      };
      const countStarts = () =>
        service.commands.filter(({ start }) => start?.workflowType === DELIVER_WEBHOOK).length;
      return { ...arranged, targets, countStarts, record, recordRefusal };
    };
    test.each(LEVELS)(
      'are held without a run while the %s is suspended, and start after it',
      async (type) => {
        const { targets, countStarts, record, ...arranged } = await arrangeEvents();
        await service.suspend(targets[type]);
        for (let event = 0; event < 2; event += 1) await database.systemTransaction(record);
        const held = {
          status: 'held',
          heldFor: 'suspension',
          attempts: 0,
          nextAttemptAt: null,
          generation: 1,
        };
        expect(await arranged.deliveries()).toMatchObject([held, held]);
        expect(countStarts()).toBe(0);
        await service.reinstate(targets[type]);
        expect((await service.settle(arranged.organizationId)).released.deliveries).toBe(2);
        expect(await arranged.deliveries()).toMatchObject([{ status: 'pending' }, { status: 'pending' }]);
        expect(countStarts()).toBe(2);
      },
    );

    describe('that announce a send refused by the suspension', () => {
      test.each(LEVELS)('are delivered while the %s is suspended, but not for abuse', async (type) => {
        const { targets, countStarts, recordRefusal, ...arranged } = await arrangeEvents();
        await service.suspend(targets[type], 'payment');
        await database.systemTransaction(recordRefusal('account_paused'));
        await database.systemTransaction(recordRefusal('rate_limited'));
        const [announced] = await arranged.deliveries();
        expect(await arranged.deliveries()).toMatchObject([
          { status: 'pending', heldFor: null },
          { status: 'held', heldFor: 'suspension' },
        ]);
        expect(countStarts()).toBe(1);

        await service.suspend(targets.organization, 'abuse');
        const worker = arranged.worker(async () => httpAnswer(200));
        await worker.attempt(announced?.id ?? '', true, 1);
        await database.systemTransaction(recordRefusal('account_paused'));
        const held = { status: 'held', heldFor: 'suspension', attempts: 0 };
        expect(await arranged.deliveries()).toMatchObject([held, held, held]);

        // What the suspension for payment alone would not hold leaves with the end of the one for abuse.
        await service.reinstate(targets.organization, 'abuse');
        expect((await service.settle(arranged.organizationId)).released.deliveries).toBe(2);
        await worker.attempt(announced?.id ?? '', true, 2);
        expect(await arranged.deliveries()).toMatchObject([
          { status: 'delivered' },
          held,
          { status: 'pending' },
        ]);
      });

      test('are held while the organization is closed', async () => {
        const { organizationId, recordRefusal, ...arranged } = await arrangeEvents();
        await query(
          database,
          sql`update organizations set status = 'suspended', deleted_at = now() where id = ${organizationId} returning id`,
        );
        await database.systemTransaction(recordRefusal('account_paused'));
        expect(await arranged.deliveries()).toMatchObject([
          { status: 'held', heldFor: 'organization_deleted' },
        ]);
      });
    });

    test('are held without a run while the organization is closed', async () => {
      const { organizationId, countStarts, record, ...arranged } = await arrangeEvents();
      await query(database, sql`update organizations set deleted_at = now() where id = ${organizationId}`);
      await database.systemTransaction(record);
      expect(await arranged.deliveries()).toMatchObject([
        { status: 'held', heldFor: 'organization_deleted' },
      ]);
      expect(countStarts()).toBe(0);
    });

    test('that commit after the reinstatement are released by its run', async () => {
      const { organizationId, target, record, ...arranged } = await arrangeEvents();
      await service.suspend(target);
      let settled: Promise<unknown> = Promise.resolve();
      await database.systemTransaction(async (transaction) => {
        await record(transaction);
        await service.reinstate(target);
        settled = service.settle(organizationId);
        await Promise.race([untilBlocking(transaction), settled]);
      });
      await settled;
      expect(await arranged.deliveries()).toMatchObject([{ status: 'pending', generation: 2 }]);
    });

    test('that find the release in progress start by themselves', async () => {
      const { organizationId, target, countStarts, record, ...arranged } = await arrangeEvents();
      await service.suspend(target);
      let recorded: Promise<unknown> = Promise.resolve();
      await database.systemTransaction(async (transaction) => {
        await awaitSuspensionHolds(transaction.db, organizationId);
        // Its statement sees the suspension; it waits before it holds the delivery.
        recorded = database.systemTransaction(record);
        await Promise.race([untilBlocking(transaction), recorded]);
        await service.reinstate(target);
      });
      await recorded;
      expect(await arranged.deliveries()).toMatchObject([
        { status: 'pending', heldFor: null, generation: 1 },
      ]);
      expect(countStarts()).toBe(1);
    });

    test('wait with them if they are restarted meanwhile, unless the suspension has just ended', async () => {
      const { organizationId, target, countStarts, record, ...arranged } = await arrangeEvents();
      await database.systemTransaction(record);
      const restart = (transaction: Transaction) =>
        restartDeliveries(transaction, service.outbox, {
          selection: transaction.db
            .selectFrom('webhook_deliveries')
            .select('id')
            .where('org_id', '=', organizationId),
          mode: 'start',
        });
      const exhaust = () =>
        query(
          database,
          sql`update webhook_deliveries set status = 'exhausted', held_for = null where org_id = ${organizationId} returning id`,
        );
      await exhaust();
      await service.suspend(target);
      await database.systemTransaction(restart);
      expect(await arranged.deliveries()).toMatchObject([
        { status: 'held', heldFor: 'suspension', generation: 2, nextAttemptAt: null },
      ]);
      expect(countStarts()).toBe(1);
      await exhaust();
      let restarted: Promise<unknown> = Promise.resolve();
      await database.systemTransaction(async (transaction) => {
        await awaitSuspensionHolds(transaction.db, organizationId);
        restarted = database.systemTransaction(restart);
        await Promise.race([untilBlocking(transaction), restarted]);
        await service.reinstate(target);
      });
      await restarted;
      expect(await arranged.deliveries()).toMatchObject([
        { status: 'pending', heldFor: null, generation: 3 },
      ]);
      expect(countStarts()).toBe(2);
    });

    test.each(LEVELS)(
      'wait with them if they are the first of a replay while the %s is suspended',
      async (type) => {
        const { organizationId, targets, endpointId, countStarts, record, ...arranged } =
          await arrangeEvents();
        await query(database, sql`delete from events where org_id = ${organizationId} returning id`);
        for (let event = 0; event < 2; event += 1) await database.systemTransaction(record);
        await query(
          database,
          sql`delete from webhook_deliveries where org_id = ${organizationId} returning id`,
        );
        await service.suspend(targets[type]);
        const startsBefore = countStarts();
        const jobId = newId('bulkJob');
        await query(
          database,
          sql`insert into webhook_bulk_jobs (id, org_id, env_id, endpoint_id, kind, requested_by_kind, requested_by_id, status, since, until, only_failed, deliveries, created_at)
        select ${jobId}, org_id, env_id, id, 'replay', 'user',
          (select user_id from members m where m.org_id = webhook_endpoints.org_id and role = 'owner' limit 1), 'running', now() - interval '1 hour', now() + interval '1 hour', false, 0, now()
        from webhook_endpoints where id = ${endpointId} returning id`,
        );
        await createBulkJobRunner({
          notifications: createNotificationService({ outbox: service.outbox }),
          database,
          outbox: service.outbox,
        }).run(jobId, () => undefined);
        const held = { status: 'held', heldFor: 'suspension', nextAttemptAt: null, generation: 1 };
        expect(await arranged.deliveries()).toMatchObject([held, held]);
        expect(countStarts()).toBe(startsBefore);
        await service.reinstate(targets[type]);
        expect((await service.settle(organizationId)).released.deliveries).toBe(2);
        expect(countStarts()).toBe(startsBefore + 2);
      },
    );

    test('all start in the end, however often it is suspended and reinstated meanwhile', async () => {
      const { organizationId, target, countStarts, record, ...arranged } = await arrangeEvents();
      const toggle = async () => {
        for (let change = 0; change < 5; change += 1) {
          await service.suspend(target);
          await service.reinstate(target);
          await service.settle(organizationId);
        }
      };
      const recordAll = async () => {
        for (let event = 0; event < 20; event += 1) await database.systemTransaction(record);
      };
      await Promise.all([toggle(), recordAll(), recordAll()]);
      await service.suspend(target);
      await Promise.all([recordAll(), service.reinstate(target).then(() => service.settle(organizationId))]);
      const deliveries = await arranged.deliveries();
      expect(deliveries.map(({ status }) => status)).toEqual(Array(60).fill('pending'));
      expect(countStarts()).toBe(60);
    });
  });

  test('of a failing endpoint are not probed, and wait for the reinstatement', async () => {
    const { organizationId, target, ...arranged } = await arrange(2, {
      consecutive_failures: 10,
      failing_since: new Date(),
      holding_since: new Date(Date.now() - 3_600_000),
      probe_generation: 1,
    });
    await query(
      database,
      sql`update webhook_deliveries set status = 'held', held_for = 'endpoint_failing' where org_id = ${organizationId}`,
    );
    await service.suspend(target);
    let posts = 0;
    const probe = arranged.probe(async () => {
      posts += 1;
      return httpAnswer(200);
    });
    const run = { endpointId: arranged.endpointId, generation: 1, now: true };
    expect(await probe.attempt(run)).toMatchObject({ kind: 'repeat' });
    expect(await arranged.deliveries()).toMatchObject([
      { status: 'held', heldFor: 'suspension' },
      { status: 'held', heldFor: 'suspension' },
    ]);
    expect(await probe.attempt(run)).toEqual({ kind: 'ended', status: 'released' });
    expect(posts).toBe(0);
    await service.reinstate(target);
    expect((await service.settle(organizationId)).released.deliveries).toBe(2);
    expect(await arranged.deliveries()).toMatchObject([{ status: 'pending' }, { status: 'pending' }]);
  });
});
