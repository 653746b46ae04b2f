import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { AttachmentEntity } from '../../domain/attachments/attachment.entity.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { ThreadEntity } from '../../domain/messages/thread.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { newId } from '../../platform/ids.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { countRows } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

const arrange = () => arrangeInbox(database);

describe('a received message', () => {
  test('is stored in a thread and announced with the specified data', async () => {
    const { receive, inbox } = await arrange();
    const { message, outcome } = await receive(
      mail({ Subject: 'Question', 'Message-ID': '<q1@people.example>' }, 'How are you?'),
    );
    expect(outcome).toBe(`stored as ${message?.id}`);
    expect(message).toMatchObject({
      direction: 'inbound',
      status: 'received',
      fromEmail: 'ada@people.example',
      fromName: 'Ada',
      subject: 'Question',
      extractedText: 'How are you?',
      rfcMessageId: 'q1@people.example',
      automated: false,
    });
    const [event] = await database.db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('inbox_id', '=', inbox.id)
      .execute();
    expect(event).toMatchObject({ type: 'message.received' });
    expect(event?.data).toEqual({
      message_id: message?.id,
      thread_id: message?.threadId,
      inbox_id: inbox.id,
      from_address: 'ada@people.example',
      to_addresses: ['agent@mail.test'],
      subject: 'Question',
      extracted_text: 'How are you?',
      has_attachments: false,
      received_at: message?.receivedAt?.toISOString(),
    });
  });

  test('is stored and announced once, no matter how often ingestion runs', async () => {
    const { receive, ingest, inbox } = await arrange();
    const { receiptId } = await receive(mail({ Subject: 'Once' }));
    await expect(ingest.ingest(receiptId)).resolves.toBe('already processed');
    const [messages, events] = await database.systemTransaction(async ({ db }) => [
      await countRows(db.selectFrom('messages').select('id').where('inbox_id', '=', inbox.id)),
      await countRows(db.selectFrom('events').select('id').where('inbox_id', '=', inbox.id)),
    ]);
    expect([messages, events]).toEqual([1, 1]);
  });

  test('is stored once by concurrent ingestions', async () => {
    const { accept, ingest } = await arrange();
    const receiptId = await accept(mail({ Subject: 'Race' }));
    const outcomes = await Promise.all([ingest.ingest(receiptId), ingest.ingest(receiptId)]);
    expect(outcomes.filter((outcome) => outcome.startsWith('stored'))).toHaveLength(1);
  });

  test('is stored in turn with others, so that a flood leaves database connections to sends', async () => {
    let open = 0;
    let most = 0;
    const bothOpen = Promise.withResolvers<void>();
    const counted: typeof database = {
      ...database,
      async systemTransaction(work) {
        most = Math.max(most, ++open);
        if (open === 2) bothOpen.resolve();
        await bothOpen.promise;
        // The others are ready to store meanwhile.
        await pause(200);
        return database.systemTransaction(work).finally(() => {
          open -= 1;
        });
      },
    };
    const { accept, ingest } = await arrangeInbox(database, { database: counted, maxConcurrentStores: 2 });
    const receiptIds = await Promise.all(
      Array.from({ length: 8 }, (_, index) => accept(mail({ Subject: `Flood ${index}` }))),
    );
    const outcomes = await Promise.all(receiptIds.map((receiptId) => ingest.ingest(receiptId)));
    expect(outcomes).toEqual(receiptIds.map(() => expect.stringContaining('stored')));
    expect(most).toBe(2);
  });

  test.each([
    { names: 'In-Reply-To', fields: { 'In-Reply-To': '<first@people.example>' }, joins: true },
    {
      names: 'References',
      fields: { References: '<unknown@people.example> <first@people.example>' },
      joins: true,
    },
    {
      names: 'an unknown message',
      fields: { 'In-Reply-To': '<other@people.example>', Subject: 'Re: Topic' },
      joins: false,
    },
    { names: 'nothing, with a reply’s subject', fields: { Subject: 'AW: Topic' }, joins: true },
    { names: 'nothing, with the same subject', fields: { Subject: 'Topic' }, joins: false },
    {
      names: 'nothing, from somebody else',
      fields: { Subject: 'Re: Topic', From: 'eve@people.example' },
      joins: false,
    },
  ])('that references $names joins the thread: $joins', async ({ fields, joins }) => {
    const { receive } = await arrange();
    const first = await receive(mail({ Subject: 'Topic', 'Message-ID': '<first@people.example>' }));
    const second = await receive(mail(fields as unknown as Record<string, string>));
    expect(second.message?.threadId === first.message?.threadId).toBe(joins);
  });

  test('that refers to two threads joins the thread of In-Reply-To', async () => {
    const { receive } = await arrange();
    const one = await receive(mail({ Subject: 'One', 'Message-ID': '<one@people.example>' }));
    const two = await receive(mail({ Subject: 'Two', 'Message-ID': '<two@people.example>' }));
    const third = await receive(
      mail({
        'In-Reply-To': '<one@people.example>',
        References: '<one@people.example> <two@people.example>',
      }),
    );
    expect(third.message?.threadId).toBe(one.message?.threadId);
    expect(third.message?.threadId).not.toBe(two.message?.threadId);
    const thread = await database.db
      .selectFrom('threads')
      .select(columnsOf(ThreadEntity))
      .where('id', '=', one.message?.threadId ?? '')
      .executeTakeFirstOrThrow();
    expect(thread).toMatchObject({
      messageCount: 2,
      participants: ['ada@people.example'],
      lastMessageId: third.message?.id,
    });
  });

  test('never joins a thread of another inbox', async () => {
    const mine = await arrange();
    const theirs = await arrange();
    const first = await theirs.receive(mail({ Subject: 'Secret', 'Message-ID': '<secret@people.example>' }));
    const second = await mine.receive(mail({ 'In-Reply-To': '<secret@people.example>' }));
    expect(second.message?.threadId).not.toBe(first.message?.threadId);
  });

  test('stores files with any names', async () => {
    const { receive, objects } = await arrange();
    const { message } = await receive(
      mail(
        { 'Content-Type': 'multipart/mixed; boundary=b' },
        [
          '--b',
          'Content-Type: text/plain',
          '',
          'See file.',
          '--b',
          "Content-Disposition: attachment; filename*=UTF-8''%E6%96%87.txt",
          'Content-Type: text/plain',
          'Content-Transfer-Encoding: base64',
          '',
          'YWJj',
          '--b--',
          '',
        ].join('\r\n'),
      ),
    );
    const files = await database.db
      .selectFrom('attachments')
      .select(columnsOf(AttachmentEntity))
      .where('message_id', '=', message?.id ?? '')
      .execute();
    expect(message?.hasAttachments).toBe(true);
    expect(files).toMatchObject([
      { filename: '文.txt', sizeBytes: 3, contentType: 'text/plain', disposition: 'attachment' },
    ]);
    expect(objects.get(files[0]?.storageKey ?? '')?.toString()).toBe('abc');
  });

  test.each([
    { what: 'nothing at all', raw: '' },
    { what: 'no header', raw: '\r\n\r\nbody' },
    { what: 'no body', raw: 'Subject: x' },
    { what: 'NUL bytes', raw: mail({ Subject: 'a\0b' }, 'c\0d') },
    {
      what: 'random bytes',
      raw: Buffer.from(Array.from({ length: 4_096 }, (_, index) => (index * 7_919) % 256)),
    },
    {
      what: 'an unfinished multipart',
      raw: mail(
        { 'Content-Type': 'multipart/mixed; boundary=b' },
        '--b\r\nContent-Type: text/plain\r\n\r\ncut',
      ),
    },
    { what: 'an unknown charset', raw: mail({ 'Content-Type': 'text/plain; charset=no-such' }, 'text') },
    { what: 'broken base64', raw: mail({ 'Content-Transfer-Encoding': 'base64' }, '!!!!') },
    {
      what: '8-bit header fields',
      raw: Buffer.concat([
        Buffer.from('From: a@b.example\r\nSubject: '),
        Buffer.from([0xe9, 0xff, 0xfe]),
        Buffer.from('\r\n\r\nx'),
      ]),
    },
    { what: 'a header line of 1 MB', raw: mail({ 'X-Long': 'x'.repeat(1_000_000) }) },
    { what: 'lone surrogates in encoded words', raw: mail({ Subject: '=?utf-16?B?2AA=?=' }) },
  ])('with $what is stored and announced', async ({ raw }) => {
    const { receive, inbox } = await arrange();
    const { message } = await receive(raw);
    expect(message?.status).toBe('received');
    expect(message?.rawKey).toMatch(/^raw\//);
    const events = await countRows(
      database.db.selectFrom('events').select('id').where('inbox_id', '=', inbox.id),
    );
    expect(events).toBe(1);
  });

  test.each([
    { field: 'Auto-Submitted', value: 'auto-replied', automated: true },
    { field: 'Auto-Submitted', value: 'no', automated: false },
    { field: 'Precedence', value: 'bulk', automated: true },
    { field: 'List-Id', value: '<list.people.example>', automated: true },
    { field: 'X-Auto-Response-Suppress', value: 'All', automated: true },
    { field: 'X-Other', value: 'auto', automated: false },
  ])('with $field: $value is automated: $automated', async ({ field, value, automated }) => {
    const { receive } = await arrange();
    const { message } = await receive(mail({ [field]: value }));
    expect(message?.automated).toBe(automated);
  });

  test('to a return path is stored as a message unless it is a report', async () => {
    const { receive } = await arrange();
    const { message, outcome } = await receive(mail({ Subject: 'I am on holiday' }), {
      kind: 'report',
      target: newId('message'),
      mailFrom: '',
    });
    expect(outcome).toMatch(/^stored/);
    expect(message).toMatchObject({ subject: 'I am on holiday', automated: true });
  });
});
