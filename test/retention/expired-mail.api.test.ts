import { describe, expect, test } from '@jest/globals';
import { CancelledFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { sql, type Updateable } from 'kysely';
import { createRetentionActivities } from '../../activities/retention.activities.ts';
import { AttachmentEntity } from '../../domain/attachments/attachment.entity.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { ReceiptEntity } from '../../domain/inbound/receipt.entity.ts';
import type { Inbox } from '../../domain/inboxes/inbox.entity.ts';
import { BATCH_SIZE } from '../../domain/messages/delete-expired-batch.ts';
import type { MessageStatus } from '../../domain/messages/message.entity.ts';
import { refreshThreads } from '../../domain/messages/refresh-thread.ts';
import { type Thread, ThreadEntity } from '../../domain/messages/thread.entity.ts';
import {
  createExpiredMailService,
  type DeletionProgress,
  type ExpiredMailOptions,
} from '../../domain/retention/expired-mail.service.ts';
import type { RetentionService } from '../../domain/retention/retention.service.ts';
import { sweepObjects } from '../../domain/stored-objects/sweep-objects.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { json } from '../../platform/database/json.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { createAgedMail, createIdAt } from '../support/aged-mail.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { countRows, query } from '../support/query.ts';
import { useIsolatedDatabase, useObjectStorage, useStorage } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const DAY_MS = 86_400_000;
const NOW = new Date();
const daysAgo = (days: number) => new Date(NOW.getTime() - days * DAY_MS);
const BEGINNING: DeletionProgress = { messages: 0, threads: 0, cursor: null };

const database = useIsolatedDatabase('expired_mail');
const storage = useStorage(useObjectStorage());

/** An organization whose 30-day policy has been in effect for a long time. */
async function arrange(options: Partial<ExpiredMailOptions> = {}) {
  const organization = await createOrganization(database);
  const { organizationId } = organization;
  await database.db
    .insertInto('retention_policies')
    .values({
      org_id: organizationId,
      retention_days: 30,
      applied_days: 30,
      applied_since: daysAgo(100),
      steps: json([]),
      changed_at: daysAgo(107),
    })
    .execute();
  const inbox = await createInbox(database, organization);
  const { outbox, commands } = recordingOutbox();
  const expiredMail = createExpiredMailService({
    database,
    outbox,
    events: createWebhookEvents({ outbox }),
    now: () => NOW,
    pause: async () => undefined,
    ...options,
  });
  const run = (from = BEGINNING, more: { isAborted?: () => boolean; limitMs?: number } = {}) =>
    expiredMail.deleteExpired(organizationId, {
      from,
      limitMs: 3_600_000,
      isAborted: () => false,
      onProgress: () => undefined,
      ...more,
    });
  return { organization, organizationId, inbox, commands, expiredMail, run };
}

const messageExists = (id: string) =>
  database.systemTransaction(
    async ({ db }) => (await countRows(db.selectFrom('messages').select('id').where('id', '=', id))) > 0,
  );
const countOf = (organizationId: string) =>
  countRows(database.db.selectFrom('messages').select('id').where('org_id', '=', organizationId));
const changePolicy = (organizationId: string, change: Updateable<Tables['retention_policies']>) =>
  database.db.updateTable('retention_policies').set(change).where('org_id', '=', organizationId).execute();

describe('expired messages', () => {
  test('are deleted with all dependent rows and objects; newer messages stay', async () => {
    const { organizationId, inbox, run } = await arrange();
    const keys = Array.from({ length: 4 }, () => `retention/${newId('attachment')}`);
    const [file = '', shared = '', raw = '', newKey = ''] = keys;
    for (const key of keys) await storage.putBytes(key, Buffer.from('bytes'), 'text/plain');
    const old = await createAgedMail(database, inbox, {
      at: daysAgo(31),
      files: [file, shared],
      rawKey: raw,
    });
    const kept = await createAgedMail(database, inbox, { at: daysAgo(29), files: [shared], rawKey: newKey });
    const sent = await createAgedMail(database, inbox, { at: daysAgo(40), direction: 'outbound' });

    expect(await run()).toMatchObject({ messages: 2, threads: 2, end: 'done' });

    expect([await messageExists(old.id), await messageExists(sent.id), await messageExists(kept.id)]).toEqual(
      [false, false, true],
    );
    await database.systemTransaction(async ({ db }) => {
      expect(
        await countRows(
          db.selectFrom('message_recipients').select('message_id').where('org_id', '=', organizationId),
        ),
      ).toBe(0);
      expect(
        await db
          .selectFrom('attachments')
          .select(columnsOf(AttachmentEntity))
          .where('org_id', '=', organizationId)
          .execute(),
      ).toMatchObject([{ messageId: kept.id }]);
      expect(
        await db
          .selectFrom('inbound_receipts')
          .select(columnsOf(ReceiptEntity))
          .where('org_id', '=', organizationId)
          .execute(),
      ).toMatchObject([{ messageId: kept.id }]);
      expect(
        await db
          .selectFrom('threads')
          .select(columnsOf(ThreadEntity))
          .where('org_id', '=', organizationId)
          .execute(),
      ).toMatchObject([{ id: kept.threadId }]);
      const [words] = await query(
        { db },
        sql`select count(*)::int as count from message_search where org_id = ${organizationId}`,
      );
      expect(words).toEqual({ count: 1 });
    });
    await sweepObjects(database, storage);
    for (const key of [file, raw])
      await expect(storage.getBytes(key, 100)).rejects.toMatchObject({ failure: 'missing' });
    for (const key of [shared, newKey]) expect((await storage.getBytes(key, 100)).toString()).toBe('bytes');
  });

  test('leave events without their content, and archives of exports', async () => {
    const { organizationId, inbox, run } = await arrange();
    const [old, kept] = [
      await createAgedMail(database, inbox, { at: daysAgo(31) }),
      await createAgedMail(database, inbox, { at: daysAgo(29) }),
    ];
    const archive = newId('export');
    await database.systemTransaction(async ({ db }) => {
      for (const { id: message_id } of [old, kept])
        await db
          .insertInto('events')
          .values({
            id: newId('event'),
            org_id: organizationId,
            env_id: inbox.environmentId,
            inbox_id: inbox.id,
            type: 'message.received',
            data: json({ message_id, subject: 'words' }),
          })
          .execute();
      await query(
        { db },
        sql`insert into exports (id, org_id, requested_by, storage_key, status, expires_at, created_at, updated_at)
        values (${archive}, ${organizationId}, 'key_a', ${archive}, 'ready', now() + interval '1 day', now(), now())`,
      );
    });
    await run();
    const events = await database.db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('org_id', '=', organizationId)
      .execute();
    expect(events.map(({ data, redacted }) => ({ data, redacted }))).toEqual(
      expect.arrayContaining([
        { data: { message_id: old.id, subject: '' }, redacted: true },
        { data: { message_id: kept.id, subject: 'words' }, redacted: false },
      ]),
    );
    const archives = await query(database, sql`select status from exports where id = ${archive}`);
    expect(archives).toEqual([{ status: 'ready' }]);
  });

  test('do not include drafts', async () => {
    const { organizationId, inbox, run } = await arrange();
    const { threadId } = await createAgedMail(database, inbox, { at: daysAgo(60) });
    await database.db
      .insertInto('drafts')
      .values({
        id: newId('draft'),
        org_id: organizationId,
        env_id: inbox.environmentId,
        inbox_id: inbox.id,
        thread_id: threadId,
        in_reply_to: null,
        subject: null,
        to: json([]),
        cc: json([]),
        bcc: json([]),
        reply_to: json([]),
        text_body: null,
        html_body: null,
        headers: json({}),
        send_at: null,
        send_error: null,
        created_at: daysAgo(90),
        updated_at: daysAgo(90),
      })
      .execute();
    expect(await run()).toMatchObject({ messages: 1, threads: 1 });
    const drafts = await countRows(
      database.db.selectFrom('drafts').select('id').where('org_id', '=', organizationId),
    );
    expect(drafts).toBe(1);
  });

  test.each<MessageStatus>(['queued', 'sending', 'deferred', 'needs_attention'])(
    'are kept while %s',
    async (status) => {
      const { inbox, run } = await arrange();
      const fields = { status, sent_at: null };
      const { id } = await createAgedMail(database, inbox, {
        at: daysAgo(90),
        direction: 'outbound',
        fields,
      });
      expect(await run()).toMatchObject({ messages: 0, end: 'done' });
      expect(await messageExists(id)).toBe(true);
    },
  );

  test('are dated by when they were sent or received', async () => {
    const { inbox, run } = await arrange();
    const fields = { sent_at: daysAgo(2) };
    const { id } = await createAgedMail(database, inbox, { at: daysAgo(45), direction: 'outbound', fields });
    await run();
    expect(await messageExists(id)).toBe(true);
  });

  test('are deleted in every environment, and in no other organization', async () => {
    const { organization, organizationId, inbox, run } = await arrange();
    const sandbox = await createInbox(database, organization, {
      environmentId: organization.sandboxEnvironmentId,
    });
    const stranger = await arrange();
    for (const place of [inbox, sandbox, stranger.inbox])
      await createAgedMail(database, place, { at: daysAgo(99) });
    expect(await run()).toMatchObject({ messages: 2 });
    expect(await countOf(organizationId)).toBe(0);
    expect(await countOf(stranger.organizationId)).toBe(1);
  });

  test('stop being tracked', async () => {
    const { inbox, run, commands, organizationId } = await arrange();
    await changePolicy(organizationId, { applied_days: 1 });
    const tracked = { direction: 'outbound', fields: { tracked: true } } as const;
    const recent = await createAgedMail(database, inbox, { at: daysAgo(3), ...tracked });
    await createAgedMail(database, inbox, { at: daysAgo(20), ...tracked });
    expect(await run()).toMatchObject({ messages: 2 });
    expect(commands).toMatchObject([
      { signal: { workflowId: `delivery/${recent.id}`, args: [{ openRecipients: 0 }] } },
    ]);
  });
});

describe('a long deletion', () => {
  const MESSAGES = 2 * BATCH_SIZE + 50;

  /** Messages from 60 to 20 days ago, a third of them within 30 days; some hidden, labeled, sent, with attachments. */
  async function fill(inbox: Inbox): Promise<void> {
    const threads = Array.from({ length: 12 }, () => newId('thread'));
    const stamp = (days: number) => daysAgo(days).toISOString();
    await database.systemTransaction(async ({ db }) => {
      for (const id of threads)
        await db
          .insertInto('threads')
          .values({
            id,
            org_id: inbox.organizationId,
            env_id: inbox.environmentId,
            inbox_id: inbox.id,
            subject: '',
            base_subject: '',
            last_message_at: daysAgo(60),
          })
          .execute();
    });
    await database.systemTransaction(async ({ db }) => {
      for (let n = 0; n < MESSAGES; n += 1) {
        const at = new Date(Date.parse(stamp(60)) + (n * 40 * DAY_MS) / MESSAGES);
        // The first thread has most messages; the last threads have only expired ones.
        const turn = Math.floor(n / 2);
        const thread = n % 2 === 0 ? 0 : n < MESSAGES / 2 ? 6 + (turn % 6) : 1 + (turn % 5);
        await insertMessage(db, inbox, { at, threadId: threads[thread] ?? '', n });
      }
      await refreshThreads(db, threads);
    });
  }

  async function insertMessage(
    db: Db,
    inbox: Inbox,
    { at, threadId, n }: { at: Date; threadId: string; n: number },
  ): Promise<void> {
    const outbound = n % 3 === 0;
    const id = createIdAt('message', at);
    await query(
      { db },
      sql`insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
         reply_to, subject, preview, labels, has_attachments, headers, created_at, updated_at)
       values (${id}, ${inbox.organizationId}, ${inbox.environmentId}, ${inbox.id}, ${threadId}, ${outbound ? 'outbound' : 'inbound'}, ${outbound ? 'sent' : 'received'}, ${`person-${n % 17}@people.example`}, '[]', '[]', '[]', '[]', '', ${`preview ${n}`}, ${n % 10 === 0 ? '{spam}' : `{label-${n % 7}}`}::text[], ${n % 5 === 0}, '{}', ${at}, ${at})`,
    );
    if (outbound)
      await query(
        { db },
        sql`insert into message_recipients (message_id, position, org_id, field, email, updated_at)
         values (${id}, 0, ${inbox.organizationId}, 'to', ${`Other-${n % 11}@people.example`}, now())`,
      );
  }

  const threadsOf = (organizationId: string) =>
    database.db
      .selectFrom('threads')
      .select(columnsOf(ThreadEntity))
      .where('org_id', '=', organizationId)
      .orderBy('id')
      .execute();

  /** Recomputes every thread and removes empty ones. */
  async function expectConsistentThreads(organizationId: string): Promise<Thread[]> {
    const shown = await threadsOf(organizationId);
    for (const { id } of shown) expect(await countIn(id)).toBeGreaterThan(0);
    const recomputed = await database.systemTransaction(async ({ db }) => {
      await refreshThreads(
        db,
        shown.map(({ id }) => id),
      );
      return db
        .selectFrom('threads')
        .select(columnsOf(ThreadEntity))
        .where('org_id', '=', organizationId)
        .orderBy('id')
        .execute();
    });
    const comparable = (threads: Thread[]) => threads.map(({ updatedAt: _, ...thread }) => thread);
    expect(comparable(shown)).toEqual(comparable(recomputed));
    return shown;
  }
  const countIn = (threadId: string) =>
    countRows(database.db.selectFrom('messages').select('id').where('thread_id', '=', threadId));
  const countOld = async (organizationId: string) => {
    const [row] = await query<{ count: number }>(
      database,
      sql`select count(*)::int as count from messages where org_id = ${organizationId} and created_at < ${daysAgo(30)}`,
    );
    return row?.count;
  };

  test('leaves threads as if the deleted messages had never existed', async () => {
    const { organizationId, inbox, run } = await arrange();
    await fill(inbox);
    const old = await countOld(organizationId);
    const before = (await threadsOf(organizationId)).length;
    const slice = await run();
    expect(slice).toMatchObject({ messages: old, end: 'done' });
    const threads = await expectConsistentThreads(organizationId);
    expect(before - threads.length).toBe(slice?.threads);
    expect(threads.length).toBeLessThan(before);
    expect(await countOld(organizationId)).toBe(0);
    expect(await countOf(organizationId)).toBe(MESSAGES - (old ?? 0));
  });

  test('refreshes a thread whose last expired message is still being sent', async () => {
    const { organizationId, inbox, run } = await arrange();
    const first = await createAgedMail(database, inbox, { at: daysAgo(70), labels: ['old'], files: ['f'] });
    await database.systemTransaction(async ({ db }) => {
      for (let n = 1; n < BATCH_SIZE; n += 1)
        await insertMessage(db, inbox, { at: daysAgo(60 - n / BATCH_SIZE), threadId: first.threadId, n });
    });
    const thread = { id: first.threadId };
    const unsettled = {
      direction: 'outbound',
      fields: { status: 'needs_attention', sent_at: null },
    } as const;
    await createAgedMail(database, inbox, { at: daysAgo(50), thread, ...unsettled });
    await createAgedMail(database, inbox, { at: daysAgo(2), thread, correspondent: 'eve@people.example' });
    await database.systemTransaction(({ db }) => refreshThreads(db, [thread.id]));
    expect(await run()).toMatchObject({ messages: BATCH_SIZE, end: 'done' });
    const [shown] = await expectConsistentThreads(organizationId);
    expect(shown).toMatchObject({ messageCount: 2, labels: [], hasAttachments: false });
  });

  test('keeps counts correct between batches and continues where it ended', async () => {
    const { organizationId, inbox, run } = await arrange();
    await fill(inbox);
    const old = await countOld(organizationId);
    const first = await run(BEGINNING, { limitMs: 0 });
    expect(first).toMatchObject({ messages: BATCH_SIZE, end: 'more' });
    for (const { id, messageCount } of await threadsOf(organizationId)) {
      const [row] = await query<{ count: number }>(
        database,
        sql`select count(*)::int as count from messages where thread_id = ${id} and not labels && '{spam,blocked}'::text[]`,
      );
      expect(row?.count).toBe(messageCount);
    }
    expect(await run(first ?? undefined)).toMatchObject({ messages: old, end: 'done' });
    await expectConsistentThreads(organizationId);
  });

  test('continues after a worker crash, from the last heartbeat or from the beginning', async () => {
    for (const heartbeats of [true, false]) {
      let batches = 0;
      const { organizationId, inbox, expiredMail } = await arrange({
        pause: async () => {
          batches += 1;
          if (batches === 1) throw new Error('killed');
        },
      });
      await fill(inbox);
      const activities = createRetentionActivities({ retention: {} as RetentionService, expiredMail });
      const attempt = async (heartbeatDetails?: unknown) => {
        const environment = new MockActivityEnvironment(
          { heartbeatDetails },
          { logger: new DefaultLogger('ERROR') },
        );
        let beat: unknown;
        environment.on('heartbeat', (details) => {
          beat = details;
        });
        const ran = environment.run(activities.deleteExpiredMail, { organizationId, from: BEGINNING });
        return { result: await ran.catch(({ message }) => message), beat };
      };
      const crashed = await attempt();
      expect(crashed).toMatchObject({ result: 'killed', beat: { messages: BATCH_SIZE } });
      const { result } = await attempt(heartbeats ? crashed.beat : undefined);
      expect(result).toMatchObject({ end: 'done' });
      expect(await countOld(organizationId)).toBe(0);
      await expectConsistentThreads(organizationId);
    }
  });

  test.each([
    ['postponed', { postponed_until: daysAgo(-1) }, 'Postponed until'],
    ['removed', { applied_days: 0 }, 'kept forever'],
  ])('stops after its batch if the policy is %s', async (_name, change, detail) => {
    const { organizationId, inbox, run } = await arrange({
      pause: () => changePolicy(organizationId, change),
    });
    await fill(inbox);
    expect(await run()).toMatchObject({
      messages: BATCH_SIZE,
      end: 'stopped',
      detail: expect.stringContaining(detail),
    });
    expect(await countOf(organizationId)).toBe(MESSAGES - BATCH_SIZE);
  });

  test('stops after its batch if the organization is suspended', async () => {
    const { organizationId, inbox, run } = await arrange({
      pause: () =>
        database.db
          .updateTable('organizations')
          .set({ status: 'suspended' })
          .where('id', '=', organizationId)
          .execute(),
    });
    await fill(inbox);
    expect(await run()).toMatchObject({ messages: BATCH_SIZE, end: 'stopped' });
  });

  test('stops after its batch if it is canceled', async () => {
    let isAborted = false;
    const { inbox, run } = await arrange({
      pause: async () => {
        isAborted = true;
      },
    });
    await fill(inbox);
    expect(await run(BEGINNING, { isAborted: () => isAborted })).toMatchObject({
      messages: BATCH_SIZE,
      end: 'more',
    });
  });

  test('reports a cancellation to Temporal', async () => {
    const environment = new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') });
    const { organizationId, inbox, expiredMail } = await arrange({
      pause: async () => environment.cancel('CANCELLED'),
    });
    await createAgedMail(database, inbox, { at: daysAgo(60) });
    const { deleteExpiredMail } = createRetentionActivities({
      retention: {} as RetentionService,
      expiredMail,
    });
    const ran = environment.run(deleteExpiredMail, { organizationId, from: BEGINNING });
    await expect(ran).rejects.toBeInstanceOf(CancelledFailure);
    expect(await countOf(organizationId)).toBe(0);
  });

  test('pauses after each batch, while another deletion is retried by Temporal', async () => {
    const errorTypes: unknown[] = [];
    const { organizationId, inbox, run, expiredMail } = await arrange({
      pause: async (ms) => {
        expect(ms).toBeGreaterThan(0);
        const { deleteExpiredMail } = createRetentionActivities({
          retention: {} as RetentionService,
          expiredMail,
        });
        const environment = new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') });
        const ran = environment.run(deleteExpiredMail, { organizationId, from: BEGINNING });
        errorTypes.push(await ran.catch(({ type }) => type));
      },
    });
    await createAgedMail(database, inbox, { at: daysAgo(60) });
    expect(await run()).toMatchObject({ messages: 1 });
    expect(new Set(errorTypes)).toEqual(new Set(['DeletionInProgress']));
    expect(await run()).toMatchObject({ messages: 0, end: 'done' });
  });
});
