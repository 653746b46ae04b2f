import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { EVENT_TYPES, type EventType, isOrganizationWide } from '../../domain/events/event-types.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createAttemptShares } from '../../domain/webhooks/attempt-slots.ts';
import { createDeliveryService, type DeliveryService } from '../../domain/webhooks/delivery.service.ts';
import { buildSampleData } from '../../domain/webhooks/sample-data.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { EgressRequest, EgressResult } from '../../platform/egress/egress.ts';
import { newId } from '../../platform/ids.ts';
import { findSchemaError } from '../support/event-schema.ts';
import { eventually } from '../support/eventually.ts';
import { purgeServiceOf } from '../support/inbox-purge.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { type Call, recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();
const SECRET = 'a secret that was deleted';
let organization: TestOrganization;
let inboxId: string;
let endpointId: string;
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
  const body = { url: 'https://receiver.example.test/hook', events: EVENT_TYPES };
  endpointId = (await call('/webhooks/endpoints', { method: 'POST', body })).json<Json>().id;
});

type Json = Record<string, unknown> & { id: string; thread_id: string };
interface EventJson extends Record<string, unknown> {
  id: string;
  type: EventType;
  data: Record<string, unknown>;
}
interface DeliveryJson {
  id: string;
  event_id: string;
  event_type: EventType;
  status: string;
  last_error: string | null;
  attempts: { response_headers: object | null; response_body: string | null; error: string | null }[];
}

const call = (path: string, options: Call = {}) => app.call(path, { token: organization.token, ...options });
const remove = (path: string) => call(path, { method: 'DELETE' });
const { outbox } = recordingOutbox();
const events = createWebhookEvents({ outbox });

/** A sent message whose content is secret. */
async function sent(threadId?: string): Promise<Json> {
  const draft = await call(`/inboxes/${inboxId}/drafts`, {
    method: 'POST',
    body: {
      to: [{ email: 'secret@example.com' }],
      subject: SECRET,
      text_body: SECRET,
      ...(threadId ? { thread_id: threadId } : {}),
    },
  });
  const message = await call(`/drafts/${draft.json<Json>().id}/send`, { method: 'POST' });
  expect(message.statusCode).toBe(201);
  const { id } = message.json<Json>();
  await app.worker.db.updateTable('messages').set({ status: 'sent' }).where('id', '=', id).execute();
  return message.json<Json>();
}

/** Records an event about a message, with sample data. */
async function record(type: EventType, { id, draft_id: draftId }: Json): Promise<void> {
  const sample = buildSampleData(type, { inboxId, time: new Date() }) as unknown as Record<string, unknown>;
  const data = {
    ...sample,
    ...('subject' in sample ? { subject: SECRET } : {}),
    ...('message_id' in sample ? { message_id: id } : {}),
    ...('draft_id' in sample ? { draft_id: draftId } : {}),
  };
  await app.worker.systemTransaction((transaction) =>
    events.record(transaction, {
      organizationId: organization.organizationId,
      environmentId: organization.productionEnvironmentId,
      inboxId,
      type,
      data: data as never,
      aboutId: type.startsWith('draft.') ? String(draftId) : type === 'message.rejected' ? id : undefined,
    }),
  );
}

const ABOUT_MESSAGES = EVENT_TYPES.filter((type) => !isOrganizationWide(type));
/** All events. The feed shows them once no transaction is open that began before theirs, also of other tests. */
const listEvents = () =>
  eventually(async () => {
    const [row] = await query<{ count: number }>(
      app.worker,
      sql`select count(*)::int as count from events where org_id = ${organization.organizationId}`,
    );
    const { data } = (await call('/events?order=asc&limit=100')).json<{ data: EventJson[] }>();
    expect(data).toHaveLength(row?.count ?? -1);
    return data;
  });
async function listDeliveries(): Promise<DeliveryJson[]> {
  const { data } = (await call(`/webhooks/endpoints/${endpointId}/deliveries?limit=100`)).json<{
    data: { id: string }[];
  }>();
  return Promise.all(
    data.map(async ({ id }) => (await call(`/webhooks/deliveries/${id}`)).json<DeliveryJson>()),
  );
}

const CLOSED_WORDS = ['bounce_type', 'bounce_sub_type', 'rejection_reason', 'decision'];

function expectRedacted(event: EventJson): void {
  expect(event).toMatchObject({ redacted: true });
  expect(Object.keys(event).slice(-2)).toEqual(['data', 'redacted']);
  expect(findSchemaError(JSON.stringify(event))).toBeUndefined();
  for (const [name, value] of Object.entries(event.data)) {
    if (Array.isArray(value)) expect({ name, value }).toEqual({ name, value: [] });
    if (typeof value === 'string' && !/_(id|at|by)$/.test(name) && !CLOSED_WORDS.includes(name))
      expect({ name, value }).toEqual({ name, value: '' });
    if (/_(id|at)$/.test(name) && value !== null) expect(value).not.toBe('');
  }
}

/** A worker whose receiver answers with what it got. */
function deliveryWorker(post: (body: string) => Promise<EgressResult>): DeliveryService {
  return createDeliveryService({
    database: app.worker,
    outbox,
    shares: createAttemptShares(50),
    egress: { post: (_url: string, { body }: EgressRequest) => post(String(body)) },
    secretBox: createSecretBox(app.config.ENCRYPTION_KEY),
    notifications: createNotificationService({ outbox }),
    timeoutMs: 15_000,
    random: () => 0.5,
  });
}

const answer = (status: number, body: string): EgressResult => ({
  kind: 'response',
  status,
  body,
  headers: { 'x-echo': body.replace(/[^ -~]/g, ' ').slice(0, 2_000) },
  durationMs: 1,
});

describe('deleting a message', () => {
  test('redacts its events of every type, and leaves ids, times and the shape', async () => {
    const message = await sent();
    const other = await sent();
    for (const type of ABOUT_MESSAGES) {
      await record(type, message);
      await record(type, other);
    }
    expect((await remove(`/messages/${message.id}`)).statusCode).toBe(204);
    const listed = await listEvents();
    const redacted = listed.filter((event) => 'redacted' in event);
    expect(redacted.map(({ type }) => type).sort()).toEqual([...ABOUT_MESSAGES].sort());
    for (const event of redacted) {
      expectRedacted(event);
      expect((await call(`/events/${event.id}`)).json()).toEqual(event);
    }
    expect(JSON.stringify(redacted)).not.toContain(SECRET);
    const kept = listed.filter((event) => !('redacted' in event));
    expect(kept).toHaveLength(ABOUT_MESSAGES.length);
    for (const { data } of kept) if ('subject' in data) expect(data.subject).toBe(SECRET);
  });

  test('cancels what announces it, and delivers the rest without content', async () => {
    const message = await sent();
    await record('message.received', message);
    await record('message.sent', message);
    app.commands.length = 0;
    await remove(`/messages/${message.id}`);
    const deliveries = await listDeliveries();
    const received = deliveries.find(({ event_type: type }) => type === 'message.received');
    const waiting = deliveries.find(({ event_type: type }) => type === 'message.sent');
    expect(received).toMatchObject({ status: 'canceled', last_error: 'purged' });
    expect(app.commands).toContainEqual(
      expect.objectContaining({
        signal: expect.objectContaining({ workflowId: `webhook/${received?.id}`, signalName: 'cancel' }),
      }),
    );
    expectProblem(await call(`/webhooks/deliveries/${received?.id}/retry`, { method: 'POST' }), 'conflict');
    const bodies: string[] = [];
    const worker = deliveryWorker(async (body) => {
      bodies.push(body);
      return answer(200, '');
    });
    expect(await worker.attempt(waiting?.id ?? '', false)).toMatchObject({ status: 'delivered' });
    expect(bodies).toHaveLength(1);
    expectRedacted(JSON.parse(bodies[0] ?? '') as EventJson);
    // One that was created at the same moment.
    await query(
      app.worker,
      sql`update webhook_deliveries set status = 'pending', next_attempt_at = date_trunc('milliseconds', now()) where id = ${received?.id}`,
    );
    expect(await worker.attempt(received?.id ?? '', false)).toMatchObject({
      status: 'canceled',
      detail: 'purged',
    });
    expect(bodies).toHaveLength(1);
  });

  test('removes what receivers answered, also to a request that is on its way', async () => {
    const message = await sent();
    await record('message.sent', message);
    await record('message.delivered', message);
    const [late, failed] = await listDeliveries();
    await deliveryWorker(async (body) => answer(500, body)).attempt(failed?.id ?? '', false);
    expect((await listDeliveries()).at(-1)?.attempts[0]?.response_body).toContain(SECRET);
    for (const status of [500, 200])
      await deliveryWorker(async (body) => {
        if (status === 500) await remove(`/messages/${message.id}`);
        return answer(status, body);
      }).attempt(late?.id ?? '', true);
    const attempts = (await listDeliveries()).flatMap((delivery) => delivery.attempts);
    expect(attempts).toHaveLength(3);
    expect(JSON.stringify(attempts)).not.toContain(SECRET);
    // The first request to each endpoint was on its way or answered; the later one had no content to repeat.
    expect(attempts.filter(({ response_body: body }) => body === '')).toHaveLength(2);
    expect(attempts.filter(({ response_headers: headers }) => headers !== null)).toHaveLength(1);
  });

  test('a request that is repeated with its key gets no content, and sends nothing', async () => {
    const path = `/inboxes/${inboxId}/messages`;
    const headers = { 'idempotency-key': 'once' };
    const body = { to: [{ email: 'secret@example.com' }], subject: SECRET };
    const first = await call(path, { method: 'POST', body, headers });
    const { id } = first.json<Json>();
    const draft = await call(`/inboxes/${inboxId}/drafts`, { method: 'POST', body, headers });
    const sentDraft = await call(`/drafts/${draft.json<Json>().id}/send`, { method: 'POST' });
    await app.worker.db
      .updateTable('messages')
      .set({ status: 'sent' })
      .where('inbox_id', '=', inboxId)
      .execute();
    await remove(`/messages/${id}`);
    await remove(`/messages/${sentDraft.json<Json>().id}`);
    expectProblem(await call(path, { method: 'POST', body, headers }), 'not_found');
    expectProblem(await call(`/inboxes/${inboxId}/drafts`, { method: 'POST', body, headers }), 'not_found');
    expectProblem(
      await call(path, { method: 'POST', body: { ...body, subject: 'x' }, headers }),
      'idempotency_key_reused',
    );
    expect((await call(`/inboxes/${inboxId}/messages`)).json<{ data: unknown[] }>().data).toEqual([]);
    const stored = await query<{ body: Buffer | null }>(
      app.worker,
      sql`select body from idempotency_keys where org_id = ${organization.organizationId}`,
    );
    expect(stored).toEqual([{ body: null }, { body: null }]);
  });

  test('removes the delivery reports and the duplicates of it', async () => {
    const message = await sent();
    const receipts = [
      { kind: 'report', messageId: message.id, duplicateOf: null },
      { kind: 'mail', messageId: newId('message'), duplicateOf: message.id },
    ];
    for (const { kind, messageId, duplicateOf } of receipts)
      await query(
        app.worker,
        sql`insert into inbound_receipts (id, org_id, env_id, inbox_id, kind, message_id, duplicate_of, raw_key, size_bytes,
          sha256, mail_from, rcpt_to, client_ip, status, received_at, processed_at)
        values (${newId('receipt')}, ${organization.organizationId}, ${organization.productionEnvironmentId}, ${inboxId},
          ${kind}, ${messageId}, ${duplicateOf}, ${`raw/${kind}/${message.id}.eml`}, 1, '', '', '', '', 'processed', now(),
          now()) returning id`,
      );
    await remove(`/messages/${message.id}`);
    expect(await query(app.worker, sql`select id from inbound_receipts where inbox_id = ${inboxId}`)).toEqual(
      [],
    );
    const due = await query(
      app.worker,
      sql`select storage_key from unclaimed_objects where storage_key like ${`raw/%/${message.id}.eml`} and due_at <= now()`,
    );
    expect(due).toHaveLength(2);
  });
});

test('deleting a thread redacts the events of all its messages', async () => {
  const first = await sent();
  const second = await sent(first.thread_id);
  for (const message of [first, second]) await record('message.sent', message);
  expect((await remove(`/threads/${first.thread_id}`)).statusCode).toBe(204);
  const listed = await listEvents();
  expect(listed).toHaveLength(2);
  for (const event of listed) expectRedacted(event);
});

test('deleting a draft redacts its events', async () => {
  const draft = (
    await call(`/inboxes/${inboxId}/drafts`, { method: 'POST', body: { subject: SECRET } })
  ).json<Json>();
  await record('draft.rejected', { ...draft, draft_id: draft.id });
  await remove(`/drafts/${draft.id}`);
  for (const event of await listEvents()) expectRedacted(event);
});

test('a refusal at the call is redacted with the draft, and one at dispatch with the message', async () => {
  await call('/lists/send/block', { method: 'POST', body: { entry: 'secret@example.com' } });
  const body = { to: [{ email: 'secret@example.com' }], subject: SECRET };
  const draft = (await call(`/inboxes/${inboxId}/drafts`, { method: 'POST', body })).json<Json>();
  expectProblem(await call(`/drafts/${draft.id}/send`, { method: 'POST' }), 'message_rejected');
  const before = await app.worker.db
    .selectFrom('events')
    .select(columnsOf(EventEntity))
    .where('inbox_id', '=', inboxId)
    .execute();
  expect(before.map(({ type, aboutId }) => [type, aboutId])).toEqual([['message.rejected', draft.id]]);
  await remove(`/drafts/${draft.id}`);
  for (const event of await listEvents()) expectRedacted(event);
});

describe('purging an inbox', () => {
  const PLACES = ['', '/messages', '/threads', '/drafts'];
  const statuses = async () =>
    Promise.all(PLACES.map(async (place) => (await call(`/inboxes/${inboxId}${place}`)).statusCode));

  test('shows the inbox as purging until nothing is left of it, and then not at all', async () => {
    await sent();
    expect((await remove(`/inboxes/${inboxId}`)).statusCode).toBe(204);
    expect(await statuses()).toEqual([404, 200, 200, 404]);
    expect((await remove(`/inboxes/${inboxId}?purge=true`)).statusCode).toBe(204);
    expect(await statuses()).toEqual([200, 200, 200, 200]);
    expect((await call(`/inboxes/${inboxId}`)).json()).toMatchObject({ id: inboxId, status: 'purging' });
    expect((await remove(`/inboxes/${inboxId}?purge=true`)).statusCode).toBe(204);
    await purgeServiceOf(app.worker).purge(inboxId, () => undefined);
    expect(await statuses()).toEqual([404, 404, 404, 404]);
    expectProblem(await remove(`/inboxes/${inboxId}?purge=true`), 'not_found');
  });

  test('redacts all its events, also of what no message came of', async () => {
    const message = await sent();
    for (const type of ABOUT_MESSAGES) await record(type, message);
    await query(app.worker, sql`update events set about_id = null where inbox_id = ${inboxId}`);
    const elsewhere = inboxId;
    inboxId = (await createInbox(app.worker, organization)).id;
    await record('message.sent', await sent());
    await remove(`/inboxes/${elsewhere}?purge=true`);
    await purgeServiceOf(app.worker).purge(elsewhere, () => undefined);
    const listed = await listEvents();
    const redacted = listed.filter((event) => 'redacted' in event);
    expect(redacted).toHaveLength(ABOUT_MESSAGES.length);
    for (const event of redacted) expectRedacted(event);
    expect(listed.at(-1)?.data.subject).toBe(SECRET);
    expect((await call(`/events?inbox_id=${elsewhere}`)).json<{ data: unknown[] }>().data).toHaveLength(
      ABOUT_MESSAGES.length,
    );
  });

  test('deletes the objects before it ends, and ends what was exported before', async () => {
    const message = await sent();
    const rawKey = `raw/sent/${message.id}.eml`;
    await app.worker.db
      .updateTable('messages')
      .set({ raw_key: rawKey })
      .where('id', '=', message.id)
      .execute();
    const { organizationId } = organization;
    const archive = newId('export');
    const running = newId('export');
    const key = (id: string) => `exports/${id}.zip`;
    await query(
      app.worker,
      sql`insert into exports (id, org_id, requested_by, storage_key, status, expires_at, created_at, updated_at)
      values (${archive}, ${organizationId}, 'key_a', ${key(archive)}, 'ready', now() + interval '1 day', now(), now()),
        (${running}, ${organizationId}, 'key_a', ${key(running)}, 'running', null, now(), now()) returning id`,
    );
    const uploading = `attachments/uploading/${newId('attachment')}`;
    await query(
      app.worker,
      sql`insert into unclaimed_objects (storage_key, org_id, due_at)
      values (${key(archive)}, ${organizationId}, now() + interval '2 days'),
        (${uploading}, ${organizationId}, now() + interval '1 hour') returning storage_key`,
    );
    await remove(`/inboxes/${inboxId}?purge=true`);
    const deleted: string[] = [];
    const purges = purgeServiceOf(app.worker, { deleteMany: async (keys) => void deleted.push(...keys) });
    await purges.purge(inboxId, () => undefined);
    expect(deleted).toEqual(expect.arrayContaining([rawKey, key(archive)]));
    expect(deleted).not.toContain(uploading);
    const rows = await query<{ id: string; status: string }>(
      app.worker,
      sql`select id, status from exports where org_id = ${organizationId} order by id`,
    );
    expect(rows).toEqual(
      [
        { id: archive, status: 'expired' },
        { id: running, status: 'canceled' },
      ].sort((a, b) => (a.id < b.id ? -1 : 1)),
    );
    expect(purges.commands).toContainEqual(
      expect.objectContaining({ signal: expect.objectContaining({ workflowId: `export/${running}` }) }),
    );
  });

  test('does not end while an object cannot be deleted', async () => {
    const message = await sent();
    await app.worker.db
      .updateTable('messages')
      .set({ raw_key: `raw/sent/${message.id}.eml` })
      .where('id', '=', message.id)
      .execute();
    await remove(`/inboxes/${inboxId}?purge=true`);
    const down = purgeServiceOf(app.worker, {
      deleteMany: async () => {
        throw new Error('storage is down');
      },
    });
    await expect(down.purge(inboxId, () => undefined)).rejects.toThrow('storage is down');
    expect((await call(`/inboxes/${inboxId}`)).json()).toMatchObject({ status: 'purging' });
    await purgeServiceOf(app.worker).purge(inboxId, () => undefined);
    expect((await call(`/inboxes/${inboxId}`)).statusCode).toBe(404);
  });

  test('leaves archives alone that are made while it waits for a message', async () => {
    const message = await sent();
    await app.worker.db
      .updateTable('messages')
      .set({ status: 'needs_attention' })
      .where('id', '=', message.id)
      .execute();
    await remove(`/inboxes/${inboxId}?purge=true`);
    const purge = () => purgeServiceOf(app.worker).purge(inboxId, () => undefined);
    await expect(purge()).rejects.toMatchObject({ code: 'unavailable' });
    const id = newId('export');
    await query(
      app.worker,
      sql`insert into exports (id, org_id, requested_by, storage_key, status, expires_at, created_at, updated_at)
      values (${id}, ${organization.organizationId}, 'key_a', ${`exports/${id}.zip`}, 'ready', now() + interval '1 day',
        now(), now()) returning id`,
    );
    const status = async () =>
      (await query<{ status: string }>(app.worker, sql`select status from exports where id = ${id}`))[0]
        ?.status;
    await expect(purge()).rejects.toMatchObject({ code: 'unavailable' });
    expect(await status()).toBe('ready');
    await app.worker.db
      .updateTable('messages')
      .set({ status: 'sent' })
      .where('id', '=', message.id)
      .execute();
    await purge();
    expect(await status()).toBe('expired');
  });
});
