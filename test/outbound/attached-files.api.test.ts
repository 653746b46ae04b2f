import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { simpleParser } from 'mailparser';
import { AttachmentEntity } from '../../domain/attachments/attachment.entity.ts';
import { createAttachmentService } from '../../domain/attachments/attachment.service.ts';
import type { FileMetadata } from '../../domain/attachments/stored-file.ts';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { ensureMimeStored } from '../../domain/outbound/stored-mime.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Storage } from '../../platform/storage.ts';
import { TEST_APPROVAL_MS, testUnsubscribeLinks, unsigned } from '../support/mail-services.ts';
import { arrangeSending } from '../support/outbound-mail.ts';
import { useObjectStorage, useStorage, useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const MEBIBYTE = 1024 * 1024;
const database = useWorkerDatabase();
const objects = useObjectStorage();
const storage = useStorage(objects);

async function sendWith(
  files: (Partial<FileMetadata> & { content: Buffer })[],
  htmlBody: string | null = null,
) {
  const world = await arrangeSending(database);
  const attachments = createAttachmentService({ database, storage });
  const stored = await Promise.all(
    files.map(({ content, ...facts }) =>
      attachments.storeUpload(
        world.scope,
        world.inbox.id,
        {
          filename: 'file',
          contentType: 'application/octet-stream',
          contentId: null,
          disposition: 'attachment',
          ...facts,
        },
        Readable.from(content),
      ),
    ),
  );
  const { message } = await world.sends.send(
    world.scope,
    world.inbox.id,
    {
      to: [{ email: 'ada@people.example' }],
      cc: [],
      bcc: [],
      replyTo: [],
      subject: 'Files',
      textBody: null,
      htmlBody,
      labels: [],
      headers: {},
    },
    stored.map((file) => ({ kind: 'stored', file })),
  );
  return message.id;
}

const load = (id: string) =>
  database.db
    .selectFrom('messages')
    .select(columnsOf(MessageEntity, { lazy: ['textBody', 'htmlBody', 'headers'] }))
    .where('id', '=', id)
    .executeTakeFirstOrThrow();

describe('the MIME of a message with attachments', () => {
  test('contains each file byte for byte under its name, and the inline one related to the HTML', async () => {
    const files = [
      { filename: 'Rechnung März.pdf', contentType: 'application/pdf', content: randomBytes(70_000) },
      { filename: '請求書.txt', contentType: 'text/plain; charset=shift_jis', content: randomBytes(300) },
      {
        filename: 'logo.png',
        contentType: 'image/png',
        contentId: 'logo@x',
        disposition: 'inline' as const,
        content: randomBytes(10),
      },
      {
        filename: 'mail.eml',
        contentType: 'message/rfc822',
        content: Buffer.from('A: \u00e9\n\rb\r\n.\r\n', 'latin1'),
      },
      { filename: 'empty', content: Buffer.alloc(0) },
    ];
    const id = await sendWith(files, '<img src="cid:logo@x">');
    const { rawKey, sizeBytes } = await ensureMimeStored(database, storage, await load(id), unsigned);
    const raw = await storage.getBytes(rawKey, MEBIBYTE);
    expect(raw).toHaveLength(sizeBytes);
    const text = raw.toString('latin1');
    expect(text).not.toMatch(/[\u0080-\u00ff]|[^\r]\n|\r[^\n]/);
    expect(text).toContain('multipart/related');
    const { attachments } = await simpleParser(raw, { skipImageLinks: true });
    const found = new Map(attachments.map((attachment) => [attachment.filename, attachment]));
    expect([...found.keys()].sort()).toEqual(files.map(({ filename }) => filename).sort());
    for (const { filename, content } of files)
      expect(found.get(filename)?.content.equals(content)).toBe(true);
    expect(found.get('logo.png')).toMatchObject({
      cid: 'logo@x',
      related: true,
      contentDisposition: 'inline',
    });
    expect(found.get('Rechnung März.pdf')).toMatchObject({ contentType: 'application/pdf' });
    // message/rfc822 must not be encoded (RFC 2046 section 5.2.1), and these bytes could not be sent unencoded.
    expect(text).not.toMatch(/^Content-Type: message/m);
  });

  test('with 25 MiB of files is streamed with one open file at a time', async () => {
    const parts = Array.from({ length: 5 }, (_, index) => ({
      filename: `part-${index}`,
      content: randomBytes(5 * MEBIBYTE),
    }));
    const message = await load(await sendWith(parts));
    let open = 0;
    let mostOpen = 0;
    const watched: Pick<Storage, 'getStream' | 'putBytes' | 'putStream'> = {
      ...storage,
      async getStream(key) {
        open += 1;
        mostOpen = Math.max(mostOpen, open);
        const stream = await storage.getStream(key);
        return stream.once('close', () => {
          open -= 1;
        });
      },
      putBytes: () => Promise.reject(new Error('A large message is not put in one piece')),
    };
    const { sizeBytes } = await ensureMimeStored(database, watched, message, unsigned);
    expect(sizeBytes).toBeGreaterThan(33 * MEBIBYTE);
    expect(mostOpen).toBe(1);
  });
});

test('a scheduled draft is sent with its attachments', async () => {
  const world = await arrangeSending(database);
  const { outbox } = recordingOutbox();
  const drafts = createDraftService({
    notifications: createNotificationService({ outbox }),
    approvalMs: TEST_APPROVAL_MS,
    unsubscribeLinks: testUnsubscribeLinks,
    database,
    outbox,
    events: createWebhookEvents({ outbox }),
  });
  const attachments = createAttachmentService({ database, storage });
  const facts = {
    filename: 'a.txt',
    contentType: 'text/plain',
    contentId: null,
    disposition: 'attachment' as const,
  };
  const files = await attachments.storeFiles(world.scope, [{ metadata: facts, bytes: Buffer.from('a') }]);
  const { draft } = await drafts.create(world.scope, world.inbox.id, {
    to: [{ email: 'ada@people.example' }],
    sendAt: new Date(Date.now() - 1_000),
    files: files.map((file) => ({ kind: 'stored', file })),
  });
  await expect(drafts.sendDue(draft.id, draft.scheduleVersion)).resolves.toBe('sent');
  const rows = await database.db
    .selectFrom('attachments')
    .select(columnsOf(AttachmentEntity))
    .where('inbox_id', '=', world.inbox.id)
    .execute();
  expect(rows).toMatchObject([
    { messageId: expect.stringMatching(/^msg_/), draftId: null, storageKey: files[0]?.storageKey },
  ]);
});
