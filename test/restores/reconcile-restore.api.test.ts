import { beforeAll, describe, expect, test } from '@jest/globals';
import { defaultPayloadConverter } from '@temporalio/common';
import { sql } from 'kysely';
import { DraftEntity } from '../../domain/drafts/draft.entity.ts';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createSendService } from '../../domain/outbound/send.service.ts';
import { sentObjectKey } from '../../domain/outbound/stored-mime.ts';
import { type RestoreFacts, reconcileRestore } from '../../domain/restores/reconcile-restore.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createProgressMarker, detectLossAtStart } from '../../platform/installation/progress-marker.ts';
import type { RestoredStorage } from '../../platform/installation/restore.entity.ts';
import { beginReconciliation, findLastRestore } from '../../platform/installation/restore-rows.ts';
import type { RunStatus } from '../../platform/outbox/workflow-gateway.ts';
import { StorageError } from '../../platform/storage-error.ts';
import {
  accepted,
  createMailServices,
  createMemoryStorage,
  deferred,
  noApprovals,
  ScriptedTransport,
  TEST_APPROVAL_MS,
  testUnsubscribeLinks,
} from '../support/mail-services.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { recordOnce, summarize } from '../support/outbound-mail.ts';
import { query } from '../support/query.ts';
import { useIsolatedDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { testScope } from '../support/test-scope.ts';

// A database of its own: no worker sends from a restored database, which would stop the other tests.
const database = useIsolatedDatabase('restored');
const RESTORED_TO = new Date('2026-01-01T00:00:00Z');
const afterBackup = new Date(RESTORED_TO.getTime() + 1_000);
const beforeBackup = (hours: number) => new Date(RESTORED_TO.getTime() - hours * 3_600_000);
const FACTS: RestoreFacts = {
  restoredTo: RESTORED_TO,
  isNothingLost: false,
  storage: 'intact',
  isTemporalComplete: false,
  keepsFutureSchedules: false,
};

/** A `transmitMessage` of a history. */
interface Transmission {
  /** Null if it is still open. */
  endedAt: Date | null;
  result?: unknown;
  /** The attempt that ended; default: the first. */
  attempt?: number;
  /** Whether an earlier attempt failed. An operator who resets the activity resets `attempt`, but not this. */
  hasFailed?: boolean;
}

/** Histories of runs by workflow id. */
const histories = new Map<string, Transmission[]>();
const runs = new Map<string, RunStatus>();
const temporal = {
  workflow: {
    async *list({ query = '' }) {
      const workflowId = /'(.+)'/.exec(query)?.[1] ?? '';
      if (histories.has(workflowId)) yield { runId: 'run' };
    },
    getHandle: (workflowId: string) => ({
      fetchHistory: async () => ({
        events: (histories.get(workflowId) ?? []).flatMap(
          ({ endedAt, result, attempt = 1, hasFailed }, index) => [
            {
              eventId: 3 * index,
              activityTaskScheduledEventAttributes: { activityType: { name: 'transmitMessage' } },
            },
            ...(endedAt
              ? [
                  {
                    activityTaskStartedEventAttributes: {
                      scheduledEventId: 3 * index,
                      attempt,
                      lastFailure: hasFailed ? { message: 'The worker was killed.' } : null,
                    },
                  },
                  {
                    eventTime: { seconds: endedAt.getTime() / 1000 },
                    activityTaskCompletedEventAttributes: {
                      scheduledEventId: 3 * index,
                      result: { payloads: [defaultPayloadConverter.toPayload(result)] },
                    },
                  },
                ]
              : []),
          ],
        ),
      }),
    }),
  },
} as unknown as Parameters<typeof reconcileRestore>[0]['temporal'];

const markRestored = (storage: RestoredStorage | null) =>
  query(
    database,
    sql`insert into restores (restored_to, marked_at, storage)
    values (${RESTORED_TO}, now() + interval '1 second', ${storage}) returning id`,
  );

/** Objects that are not messages. */
const bucket = new Map<string, Buffer>();

async function arrange() {
  const organization = await createOrganization(database);
  const inbox = await createInbox(database, organization);
  const { outbox, commands } = recordingOutbox();
  const transport = new ScriptedTransport(async () => accepted);
  const storage = createMemoryStorage(bucket);
  const services = createMailServices(database, transport, { outbox });
  const sending = {
    unsubscribeLinks: testUnsubscribeLinks,
    database,
    outbox,
    events: createWebhookEvents({ outbox }),
  };
  const sends = createSendService({ ...sending, drafts: noApprovals });
  const drafts = createDraftService({
    notifications: createNotificationService({ outbox }),
    ...sending,
    approvalMs: TEST_APPROVAL_MS,
  });
  const scope = testScope(organization, inbox);
  const content = {
    to: [{ email: 'ada@people.example' }, { email: 'bob@people.example' }],
    cc: [],
    bcc: [],
    replyTo: [],
    subject: 'S',
    textBody: 'T',
    htmlBody: null,
    labels: [],
    headers: {},
  };
  return {
    ...services,
    transport,
    commands,
    send: async () => (await sends.send(scope, inbox.id, content)).message.id,
    sendDue: (id: string) => drafts.sendDue(id, 1),
    schedule: async (sendAt: Date) => (await drafts.create(scope, inbox.id, { ...content, sendAt })).draft.id,
    reconcile: (facts: Partial<RestoreFacts> = {}) =>
      reconcileRestore(
        {
          database,
          storage: { ...storage, sizeOf: async (key) => services.objects.get(key)?.length },
          outcomes: services.outcomes,
          outbox,
          temporal,
          workflows: {
            describe: async (id) => ({ status: runs.get(id) ?? 'NOT_FOUND', closedAt: null }),
          },
        },
        { ...FACTS, ...facts },
      ),
    message: (id: string) =>
      database.db
        .selectFrom('messages')
        .select(columnsOf(MessageEntity))
        .where('id', '=', id)
        .executeTakeFirstOrThrow(),
    draft: (id: string) =>
      database.db
        .selectFrom('drafts')
        .select(columnsOf(DraftEntity))
        .where('id', '=', id)
        .executeTakeFirstOrThrow(),
  };
}

type World = Awaited<ReturnType<typeof arrange>>;

async function transmit(world: World, id: string): Promise<void> {
  await world.dispatch.prepare(id);
  await world.dispatch.transmit(id, () => false);
}

const startsOf = ({ commands }: World, id: string) =>
  commands.flatMap(({ start }) =>
    start?.workflowId === `send/${id}` ? [start.replacesCompleted ?? false] : [],
  );

describe('sends of a backup', () => {
  let world: World;
  beforeAll(async () => {
    world = await arrange();
  });

  test('a message without a stored MIME message never left: it is sent', async () => {
    const id = await world.send();
    expect(await world.reconcile()).toMatchObject({ sends_resumed: 1, sends_needing_attention: 0 });
    expect((await world.message(id)).status).toBe('queued');
    // Its earlier run may have completed, if Temporal was kept.
    expect(startsOf(world, id)).toEqual([false, true]);
    await transmit(world, id);
    expect(await recordOnce(world, id)).toBe('settled');
    expect(world.transport.transmissions).toHaveLength(2);
  });

  test('a message that was transmitted after the backup is not sent again until a person decides', async () => {
    const id = await world.send();
    world.objects.set(sentObjectKey(id), Buffer.from('the MIME message, stored after the backup'));
    expect(await world.reconcile()).toMatchObject({ sends_resumed: 0, sends_needing_attention: 1 });
    expect(await world.message(id)).toMatchObject({
      status: 'needs_attention',
      statusDetail:
        'The database was restored from a backup, and the message may have been sent since the backup. It is not resent automatically.',
    });
    const before = world.transport.transmissions.length;
    await transmit(world, id);
    expect(await recordOnce(world, id)).toBe('needs_attention');
    expect(world.transport.transmissions).toHaveLength(before);
    expect(await world.dispatch.resolveAmbiguity(id, { resolution: 'resend' }).then(summarize)).toBe(
      'deferred',
    );
    await transmit(world, id);
    expect(await recordOnce(world, id)).toBe('settled');
    expect(world.transport.transmissions).toHaveLength(before + 2);
  });

  test('without the bucket no message is known not to have left', async () => {
    const id = await world.send();
    expect(await world.reconcile({ storage: 'restored' })).toMatchObject({ sends_needing_attention: 1 });
    expect((await world.message(id)).status).toBe('needs_attention');
    await world.dispatch.resolveAmbiguity(id, { resolution: 'sent' });
  });

  test.each([
    [null, 1],
    ['untouched', 1],
    ['restored', 1],
    ['complete', 0],
  ] as const)(
    'reads from the record of the restore whether the bucket came back: %s',
    async (storage, count) => {
      const id = await world.send();
      await markRestored(storage);
      expect(await world.reconcile({ storage: undefined, restoredTo: undefined })).toMatchObject({
        sends_needing_attention: count,
      });
      expect((await world.message(id)).status).toBe(count === 1 ? 'needs_attention' : 'queued');
      const [row] = await query<{ same: boolean }>(
        database,
        sql`select restored_to = ${RESTORED_TO} as same from restores order by id desc limit 1`,
      );
      expect(row).toEqual({ same: true });
      if (count === 1) await world.dispatch.resolveAmbiguity(id, { resolution: 'sent' });
    },
  );

  test('is refused while the restore is unfinished, and if it is told that a copied bucket is intact', async () => {
    for (const storage of ['comparing', 'copying'] as const) {
      await markRestored(storage);
      await expect(world.reconcile()).rejects.toThrow('The restore was interrupted');
      await query(
        database,
        sql`update restores set storage = 'restored' where reconciled_at is null returning id`,
      );
      await expect(world.reconcile({ storage: 'intact' })).rejects.toThrow('The bucket is not intact');
      await world.reconcile({ storage: undefined });
    }
  });

  test('needs the time of the backup if no restore has recorded it', async () => {
    await expect(world.reconcile({ restoredTo: undefined })).rejects.toThrow('name it with --restored-to');
  });

  test.each([
    { title: 'ended before the backup', last: { endedAt: beforeBackup(1) }, status: 'deferred' },
    { title: 'ended after the backup', last: { endedAt: afterBackup }, status: 'needs_attention' },
    {
      title: 'was held after the backup',
      last: { endedAt: afterBackup, result: 'held' },
      status: 'deferred',
    },
    {
      title: 'was refused after the backup',
      last: { endedAt: afterBackup, result: 'finished' },
      status: 'deferred',
    },
    {
      title: 'was held after the backup, in the retry of one that failed',
      last: { endedAt: afterBackup, result: 'held', attempt: 2 },
      status: 'needs_attention',
    },
    {
      title: 'was held after the backup, after one that failed and that an operator reset',
      last: { endedAt: afterBackup, result: 'held', hasFailed: true },
      status: 'needs_attention',
    },
    { title: 'is still open', last: { endedAt: null }, status: 'needs_attention' },
  ])(
    'a deferred message whose last transmission $title, according to Temporal, is $status',
    async ({ last, status }) => {
      const id = await world.send();
      world.transport.answerWith(async () => deferred);
      await transmit(world, id);
      await world.dispatch.record(id);
      world.transport.answerWith(async () => accepted);
      histories.set(`send/${id}`, [{ endedAt: beforeBackup(2) }, last]);
      // Even long after the retry window of the message.
      await database.db
        .updateTable('messages')
        .set({ queued_at: new Date('2025-01-01') })
        .where('id', '=', id)
        .execute();
      await world.reconcile({ isTemporalComplete: true });
      expect((await world.message(id)).status).toBe(status);
      if (status === 'needs_attention') await world.dispatch.resolveAmbiguity(id, { resolution: 'sent' });
      else await world.dispatch.cancel(id, 'done');
    },
  );

  test('a recipient whose attempt was open in the backup, or who has the message already, gets no second copy', async () => {
    const id = await world.send();
    world.transport.answerWith(async ({ recipient }) => {
      if (recipient.startsWith('bob')) throw new Error('the worker dies here');
      return accepted;
    });
    await expect(transmit(world, id)).rejects.toThrow();
    world.transport.answerWith(async () => accepted);
    expect(await world.reconcile()).toMatchObject({ sends_needing_attention: 1 });
    expect(await world.message(id)).toMatchObject({ status: 'needs_attention' });
    expect(await world.dispatch.resolveAmbiguity(id, { resolution: 'sent' }).then(summarize)).toBe('settled');
    expect((await world.message(id)).status).toBe('sent');
  });

  test('nothing is touched if nothing was lost', async () => {
    const id = await world.send();
    world.objects.set(sentObjectKey(id), Buffer.from('x'));
    expect(await world.reconcile({ isNothingLost: true })).toMatchObject({
      sends_resumed: 0,
      sends_needing_attention: 0,
    });
    expect((await world.message(id)).status).toBe('queued');
    await world.dispatch.cancel(id, 'done');
  });
});

test('until it is reconciled a restored database sends nothing, and messages of after the restore stay as they are', async () => {
  const world = await arrange();
  await beginReconciliation(database, RESTORED_TO);
  const id = await world.send();
  world.objects.set(sentObjectKey(id), Buffer.from('x'));
  await expect(transmit(world, id)).rejects.toThrow(
    'The database was restored from a backup and is not reconciled',
  );
  expect(world.transport.transmissions).toEqual([]);
  await expect(world.sendDue('drf_1')).rejects.toThrow('is not reconciled');
  expect(await world.reconcile()).toMatchObject({ sends_resumed: 0, sends_needing_attention: 0 });
  expect(await findLastRestore(database)).toBeInstanceOf(Date);
  await transmit(world, id);
  expect(await recordOnce(world, id)).toBe('settled');
  expect(world.transport.transmissions).toHaveLength(2);
});

test('unschedules drafts that may have been sent, and keeps those whose run is known to wait', async () => {
  const world = await arrange();
  const soon = new Date(Date.now() + 3_600_000);
  const [due, waiting, unknown] = [
    await world.schedule(soon),
    await world.schedule(soon),
    await world.schedule(soon),
  ];
  await database.db
    .updateTable('drafts')
    .set({ send_at: new Date(Date.now() - 60_000) })
    .where('id', '=', due)
    .execute();
  for (const id of [due, waiting]) runs.set(`scheduled/${id}/1`, 'RUNNING');
  expect(await world.reconcile({ isTemporalComplete: true })).toMatchObject({
    schedules_kept: 1,
    schedules_removed: 2,
  });
  expect(await world.draft(waiting)).toMatchObject({ sendStatus: 'scheduled' });
  for (const id of [due, unknown])
    expect(await world.draft(id)).toMatchObject({
      sendStatus: 'draft',
      sendAt: null,
      sendError: expect.stringContaining('may have been sent since the backup'),
    });
  expect(await world.reconcile({ keepsFutureSchedules: true })).toMatchObject({ schedules_kept: 1 });
  expect(await world.reconcile()).toMatchObject({ schedules_kept: 0, schedules_removed: 1 });
});

test('does not send the service’s own emails of the backup again', async () => {
  const world = await arrange();
  await query(
    database,
    sql`insert into notifications (id, email, template, params, dedupe_key, status, next_attempt_at, created_at)
      values ('ntf_1', 'ada@people.example', 'x', '{}', 'a', 'pending', now(), now() - interval '1 minute'),
        ('ntf_2', 'ada@people.example', 'x', '{}', 'b', 'sent', null, now() - interval '1 minute')`,
  );
  expect(await world.reconcile()).toMatchObject({ notifications_failed: 1 });
  const rows = await query<object>(database, sql`select id, status from notifications order by id`);
  expect(rows).toEqual([
    { id: 'ntf_1', status: 'failed' },
    { id: 'ntf_2', status: 'sent' },
  ]);
});

test('recognizes a database that has lost commits by the bucket, which is ahead of it', async () => {
  const world = await arrange();
  const marker = createProgressMarker(database, createMemoryStorage(bucket));
  for (let minute = 0; minute < 3; minute += 1) expect(await marker.advance()).toBe(0);
  expect(await marker.detectLoss()).toBe(false);
  // Point-in-time recovery within the same cluster, to the minute before.
  await query(
    database,
    sql`update installation set progress = progress - 1, advanced_at = '2026-01-01T00:00:00Z'`,
  );
  const restored = createProgressMarker(database, createMemoryStorage(bucket));
  await detectLossAtStart(restored, { isRequired: true, logger: { warn: () => undefined } });
  const id = await world.send();
  await expect(transmit(world, id)).rejects.toThrow('is not reconciled');
  expect(await restored.advance()).toBe(1);
  expect(
    await query<object>(
      database,
      sql`select restored_to::text as "restoredTo" from restores where reconciled_at is null`,
    ),
  ).toEqual([{ restoredTo: expect.stringContaining('2026-01-01') }]);
  await world.reconcile();
  expect(await restored.detectLoss()).toBe(false);
  expect(await restored.advance()).toBe(0);
  await transmit(world, id);
  expect(await recordOnce(world, id)).toBe('settled');
});

test('a worker that sends waits for the bucket at its start, any other does not', async () => {
  let tries = 0;
  const marker = {
    detectLoss: async () => {
      tries += 1;
      if (tries < 2) throw new StorageError('unavailable', 'The bucket does not respond.');
      return false;
    },
  };
  const warnings: unknown[] = [];
  const logger = { warn: (_fields: object, message: string) => warnings.push(message) } as never;
  await detectLossAtStart(marker, { isRequired: false, logger });
  expect({ tries, warnings: warnings.length }).toEqual({ tries: 1, warnings: 1 });
  const hanging = { detectLoss: () => new Promise<boolean>(() => undefined) };
  await detectLossAtStart(hanging, { isRequired: false, logger, timeoutMs: 1 });
  expect(warnings).toHaveLength(2);
  tries = 0;
  await detectLossAtStart(marker, { isRequired: true, logger });
  expect(tries).toBe(2);
});
