import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql, type Updateable } from 'kysely';
import type { MessageStatus } from '../../domain/messages/message.entity.ts';
import { sha256 } from '../../platform/crypto.ts';
import { json } from '../../platform/database/json.ts';
import type { Tables } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
let organization: TestOrganization;
let inboxId: string;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

type Json = Record<string, unknown> & { id: string; thread_id: string };
const send = (body: unknown, inbox = inboxId) =>
  app.call(`/inboxes/${inbox}/messages`, { method: 'POST', token: organization.token, body });
const get = (path: string) => app.call(path, { token: organization.token });
const ids = async (query: string) =>
  (await get(`/inboxes/${inboxId}/messages?limit=100&${query}`))
    .json<{ data: Json[] }>()
    .data.map(({ id }) => id);
const setStatus = (id: string, status: MessageStatus) =>
  app.worker.db.updateTable('messages').set({ status }).where('id', '=', id).execute();

/** Inserts a message as inbound processing stores it, with an attachment. */
async function receive(fromEmail: string, subject: string): Promise<{ id: string; threadId: string }> {
  const id = newId('message');
  const threadId = newId('thread');
  await app.worker.systemTransaction(async ({ db }) => {
    const { organizationId, productionEnvironmentId: environmentId } = organization;
    const row = { org_id: organizationId, env_id: environmentId, inbox_id: inboxId };
    await db
      .insertInto('threads')
      .values({
        ...row,
        id: threadId,
        subject,
        base_subject: subject.toLowerCase(),
        message_count: 1,
        last_message_id: id,
        last_message_at: new Date(),
        last_inbound_at: new Date(),
        last_outbound_at: null,
        has_attachments: true,
        participants: [fromEmail],
      })
      .execute();
    await db
      .insertInto('messages')
      .values({
        ...row,
        id,
        thread_id: threadId,
        direction: 'inbound',
        status: 'received',
        from_email: fromEmail,
        from_name: 'Sender',
        to: json([{ email: 'agent@mail.test' }]),
        cc: json([]),
        bcc: json([]),
        reply_to: json([]),
        subject,
        extracted_text: 'new words',
        hidden_text: 'secret words',
        signals: ['hidden_text'],
        text_body: 'new words\n> old words',
        has_attachments: true,
        headers: json({ subject }),
        authentication: json({ spf: 'pass', dkim: 'none', dmarc: 'none' }),
        spam: json({ verdict: 'ham', score: null }),
        received_at: new Date(),
      })
      .execute();
    await db
      .insertInto('attachments')
      .values({
        ...row,
        id: newId('attachment'),
        message_id: id,
        position: 0,
        filename: 'report.pdf',
        content_type: 'application/pdf',
        size_bytes: 9,
        sha256: sha256('x'),
        storage_key: 'k',
        content_id: null,
        disposition: 'attachment',
      })
      .execute();
  });
  return { id, threadId };
}

describe('sending a message', () => {
  test('returns 201 with the complete message', async () => {
    const response = await send({
      to: [{ email: 'ann@example.test', name: 'Ann' }],
      subject: 'Hello',
      text_body: 'Text',
      html_body: '<p>Text</p>',
    });
    expect(response.statusCode).toBe(201);
    const message = response.json<Json>();
    expect(Object.keys(message).sort()).toEqual(FIELDS.sort());
    expect(message).toMatchObject({
      direction: 'outbound',
      status: 'queued',
      to: [{ email: 'ann@example.test', name: 'Ann' }],
      to_addresses: ['ann@example.test'],
      from_address: { email: expect.stringContaining('@mail.test') },
      recipients: [
        { email: 'ann@example.test', status: 'pending', status_code: null, diagnostic_code: null },
      ],
      authentication: null,
      spam: null,
      provider_message_id: null,
      sent_at: null,
    });
    expect((await get(`/messages/${message.id}`)).json()).toEqual(message);
  });

  test('returns 422 without recipients', async () => {
    expectProblem(await send({ subject: 'x' }), 'no_recipients');
  });

  test('is rejected with the reason for a paused inbox, and forbidden for a suspended inbox', async () => {
    const inbox = await createInbox(app.worker, organization);
    const change = (data: Updateable<Tables['inboxes']>) =>
      app.worker.db.updateTable('inboxes').set(data).where('id', '=', inbox.id).execute();
    await change({ send_paused: true, send_paused_reason: 'Bounces' });
    const body = { to: [{ email: 'a@example.test' }] };
    const problem = expectProblem(await send(body, inbox.id), 'message_rejected');
    expect(problem.rejection_reason).toBe('account_paused');
    await change({ send_paused: false, status: 'suspended' });
    expectProblem(await send(body, inbox.id), 'inbox_suspended');
  });
});

test.each([['cc'], ['bcc']])(
  'a message may have an empty list in `to` and its recipients in %s',
  async (field) => {
    const response = await send({ to: [], [field]: ['a@example.test'], subject: 'Hidden', text_body: 'x' });
    expect(response.statusCode).toBe(201);
    expect(response.json()).toMatchObject({ to: [], [field]: [{ email: 'a@example.test' }] });
  },
);

describe('message lists', () => {
  test('omit bodies and headers', async () => {
    await send({ to: [{ email: 'a@example.test' }], text_body: 'private' });
    const list = await get(`/inboxes/${inboxId}/messages?limit=1`);
    const [message] = list.json<{ data: Json[] }>().data;
    for (const field of ['text_body', 'html_body', 'hidden_text', 'headers'])
      expect(message).not.toHaveProperty(field);
    expect(Object.keys(message ?? {}).sort()).toEqual(
      FIELDS.filter((field) => !['text_body', 'html_body', 'hidden_text', 'headers'].includes(field)).sort(),
    );
  });

  test('can be filtered by each field', async () => {
    const inbound = await receive('Bob@Example.test', '100% _special_ offer');
    const outbound = (
      await send({
        to: [{ email: 'Carol@example.test' }],
        cc: [{ email: 'dan@example.test' }],
        subject: 'Plain',
        labels: ['vip'],
      })
    ).json<Json>();
    await setStatus(outbound.id, 'delivered');

    expect(await ids('direction=inbound')).toContain(inbound.id);
    expect(await ids('direction=inbound')).not.toContain(outbound.id);
    expect(await ids('status=delivered')).toEqual([outbound.id]);
    expect(await ids('label=vip')).toEqual([outbound.id]);
    expect(await ids(`thread_id=${inbound.threadId}`)).toEqual([inbound.id]);
    expect(await ids('from=bob@example.TEST')).toEqual([inbound.id]);
    expect(await ids('to=carol@example.test')).toEqual([outbound.id]);
    expect(await ids('to=DAN@example.test')).toEqual([outbound.id]);
    expect(await ids(`subject=${encodeURIComponent('100% _SPECIAL')}`)).toEqual([inbound.id]);
    expect(await ids('subject=%25')).toEqual([inbound.id]);
    expect(await ids('has_attachments=true')).toEqual([inbound.id]);
    expect(await ids('has_attachments=false')).not.toContain(inbound.id);
    expect(await ids(`after=${outbound.created_at}`)).toContain(outbound.id);
    expect(await ids(`before=${outbound.created_at}`)).not.toContain(outbound.id);
    expect(await ids('from=nobody@example.test')).toEqual([]);
    expect(
      (await get('/messages?direction=inbound')).json<{ data: Json[] }>().data.map(({ id }) => id),
    ).toContain(inbound.id);
  });

  test.each([
    'status=flying',
    'direction=up',
    'has_attachments=maybe',
    'before=yesterday',
    'after=0000-01-01T00:00:00Z',
    'query=x',
  ])('reject the filter %s', async (query) => {
    expectProblem(await get(`/inboxes/${inboxId}/messages?${query}`), 'validation_error');
  });

  test('reject a cursor from another filter', async () => {
    await send({ to: [{ email: 'a@example.test' }] });
    await send({ to: [{ email: 'a@example.test' }] });
    const page = await get(`/inboxes/${inboxId}/messages?limit=1&direction=outbound`);
    const { next_cursor: cursor } = page.json<{ next_cursor: string }>();
    expect((await get(`/inboxes/${inboxId}/messages?direction=outbound&cursor=${cursor}`)).statusCode).toBe(
      200,
    );
    expectProblem(
      await get(`/inboxes/${inboxId}/messages?direction=inbound&cursor=${cursor}`),
      'invalid_cursor',
    );
    expectProblem(await get(`/messages?direction=outbound&cursor=${cursor}`), 'invalid_cursor');
  });
});

describe('an inbound message', () => {
  test('returns the received content', async () => {
    const { id } = await receive('sender@example.test', 'Report');
    expect((await get(`/messages/${id}`)).json()).toMatchObject({
      direction: 'inbound',
      status: 'received',
      from_address: { email: 'sender@example.test', name: 'Sender' },
      extracted_text: 'new words',
      hidden_text: 'secret words',
      signals: ['hidden_text'],
      text_body: 'new words\n> old words',
      has_attachments: true,
      attachment_ids: [expect.stringMatching(/^att_/)],
      attachments: [{ filename: 'report.pdf', content_type: 'application/pdf', size_bytes: 9 }],
      authentication: { spf: 'pass', dkim: 'none', dmarc: 'none' },
      spam: { verdict: 'ham', score: null },
      recipients: [],
    });
  });
});

describe('a message that could not be parsed completely', () => {
  test('has parse_error, including in lists', async () => {
    const { id, threadId } = await receive('sender@example.test', 'Broken');
    await app.worker.db
      .updateTable('messages')
      .set({ parse_error: 'x'.repeat(5000) })
      .where('id', '=', id)
      .execute();
    const shown = { parse_error: 'x'.repeat(1024) };
    expect((await get(`/messages/${id}`)).json()).toMatchObject(shown);
    expect((await get(`/messages?thread_id=${threadId}`)).json()).toMatchObject({ data: [shown] });
    expect((await get(`/threads/${threadId}`)).json()).toMatchObject({ messages: [shown] });
  });
});

describe('canceling a message', () => {
  const cancel = (id: string) =>
    app.call(`/messages/${id}/cancel`, { method: 'POST', token: organization.token });

  test('stops a queued message, but not a transmitted one', async () => {
    const { id } = (await send({ to: [{ email: 'a@example.test' }] })).json<Json>();
    expect((await cancel(id)).json()).toMatchObject({
      status: 'canceled',
      recipients: [{ status: 'rejected' }],
    });
    expect(expectProblem(await cancel(id), 'conflict').fix).toContain('will not be sent');
    const transmitted = (await send({ to: [{ email: 'a@example.test' }] })).json<Json>();
    await setStatus(transmitted.id, 'sent');
    expectProblem(await cancel(transmitted.id), 'conflict');
    const { id: inbound } = await receive('x@example.test', 'In');
    expectProblem(await cancel(inbound), 'conflict');
  });
});

describe('threads', () => {
  test('are created by a send and joined by a reply draft', async () => {
    const first = (await send({ to: [{ email: 'ann@example.test' }], subject: 'Topic' })).json<Json>();
    const draft = await app.call(`/inboxes/${inboxId}/drafts`, {
      method: 'POST',
      token: organization.token,
      body: { thread_id: first.thread_id, in_reply_to: first.id, to: [{ email: 'ann@example.test' }] },
    });
    const second = await app.call(`/drafts/${draft.json<Json>().id}/send`, {
      method: 'POST',
      token: organization.token,
    });
    expect(second.json()).toMatchObject({ thread_id: first.thread_id, subject: 'Re: Topic' });
    const thread = (await get(`/threads/${first.thread_id}`)).json<Json & { messages: Json[] }>();
    expect(Object.keys(thread).sort()).toEqual(
      [
        'object',
        'id',
        'inbox_id',
        'subject',
        'preview',
        'labels',
        'participants',
        'message_count',
        'last_message_id',
        'last_message_at',
        'last_inbound_at',
        'last_outbound_at',
        'has_attachments',
        'messages',
      ].sort(),
    );
    expect(thread).toMatchObject({ subject: 'Topic', message_count: 2, participants: ['ann@example.test'] });
    expect(thread.messages.map(({ id }) => id)).toEqual([first.id, second.json<Json>().id]);
    expect(thread.last_message_id).toBe(second.json<Json>().id);
  });

  test('return the newest 100 messages, oldest first', async () => {
    const { threadId } = await receive('many@example.test', 'Many');
    const messageIds = Array.from({ length: 105 }, () => newId('message'));
    await query(
      app.worker,
      sql`insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
           reply_to, subject, headers, received_at)
         select unnest(${messageIds}::text[]), org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
           reply_to, subject, headers, received_at from messages where thread_id = ${threadId}`,
    );
    const { messages } = (await get(`/threads/${threadId}`)).json<{ messages: Json[] }>();
    expect(messages.map(({ id }) => id)).toEqual(messageIds.slice(-100));
  });
});

const FIELDS = [
  'object',
  'id',
  'inbox_id',
  'thread_id',
  'env_id',
  'direction',
  'status',
  'from_address',
  'to',
  'cc',
  'bcc',
  'to_addresses',
  'cc_addresses',
  'bcc_addresses',
  'reply_to',
  'delivered_to',
  'injection',
  'codes',
  'links',
  'invites',
  'subject',
  'preview',
  'text_body',
  'html_body',
  'extracted_text',
  'hidden_text',
  'labels',
  'has_attachments',
  'attachment_ids',
  'attachments',
  'rfc_message_id',
  'draft_id',
  'in_reply_to',
  'references',
  'provider_message_id',
  'size_bytes',
  'headers',
  'authentication',
  'signals',
  'spam',
  'parse_error',
  'automated',
  'recipients',
  'created_at',
  'queued_at',
  'sent_at',
  'delivered_at',
  'bounced_at',
  'complained_at',
  'received_at',
];
