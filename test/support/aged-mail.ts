import { randomBytes } from 'node:crypto';
import { AttachmentEntity } from '../../domain/attachments/attachment.entity.ts';
import { ReceiptEntity } from '../../domain/inbound/receipt.entity.ts';
import type { Inbox } from '../../domain/inboxes/inbox.entity.ts';
import { type Message, MessageEntity } from '../../domain/messages/message.entity.ts';
import { RecipientEntity } from '../../domain/messages/recipient.entity.ts';
import { type Thread, ThreadEntity } from '../../domain/messages/thread.entity.ts';
import { addToThread, startThread } from '../../domain/messages/thread-summary.ts';
import type { Database } from '../../platform/database/database.ts';
import { type IdKind, idFromBytes, newId } from '../../platform/ids.ts';

/** An id with the timestamp `at`. */
export function createIdAt(kind: IdKind, at: Date, random = randomBytes(10)): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(at.getTime(), 0, 6);
  random.copy(bytes, 6);
  return idFromBytes(kind, bytes);
}

export interface AgedMail {
  at: Date;
  thread?: Pick<Thread, 'id'>;
  direction?: 'inbound' | 'outbound';
  /** Address of the other party. */
  correspondent?: string;
  labels?: string[];
  /** Storage keys of the attachments and of the raw message. */
  files?: string[];
  rawKey?: string | null;
  fields?: Partial<Message>;
}

/** Creates a message dated `at` with its dependent rows, in its own thread unless one is given. */
export async function createAgedMail(
  worker: Database,
  inbox: Inbox,
  { at, thread: given, direction = 'inbound', correspondent = 'ada@people.example', ...mail }: AgedMail,
): Promise<Message> {
  const { labels = [], files = [], rawKey = null, fields = {} } = mail;
  const owner = {
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
  };
  const isInbound = direction === 'inbound';
  return worker.systemTransaction(async ({ em, db }) => {
    const place = given
      ? { thread: await em.findOneOrFail(ThreadEntity, { id: given.id }), isNew: false }
      : startThread({ inbox, subject: 'Aged', at });
    const random = randomBytes(10);
    const id = createIdAt('message', at, random);
    const preview = `of ${at.toISOString()}`;
    const hasAttachments = files.length > 0;
    const thread = await addToThread(db, place, {
      message: { id, direction, preview, labels, hasAttachments },
      correspondents: [correspondent],
      at,
    });
    const message = em.create(MessageEntity, {
      ...owner,
      id,
      threadId: thread.id,
      direction,
      status: isInbound ? 'received' : 'sent',
      fromEmail: isInbound ? correspondent : inbox.email,
      fromName: null,
      to: [{ email: isInbound ? inbox.email : correspondent }],
      cc: [],
      bcc: [],
      replyTo: [],
      subject: 'Aged',
      preview,
      textBody: 'words',
      headers: {},
      labels,
      hasAttachments,
      rfcMessageId: null,
      inReplyTo: null,
      rawKey,
      createdAt: at,
      receivedAt: isInbound ? at : null,
      sentAt: isInbound ? null : at,
      ...fields,
    });
    em.persist(message);
    if (!isInbound)
      em.create(RecipientEntity, {
        messageId: message.id,
        position: 0,
        organizationId: inbox.organizationId,
        field: 'to',
        email: correspondent,
        status: 'sent',
      });
    if (isInbound && rawKey !== null)
      em.create(ReceiptEntity, {
        ...owner,
        id: createIdAt('receipt', at, random),
        kind: 'mail',
        messageId: message.id,
        rawKey,
        sizeBytes: 1,
        sha256: Buffer.alloc(32),
        mailFrom: correspondent,
        rcptTo: inbox.email,
        clientIp: '192.0.2.1',
        status: 'processed',
        receivedAt: at,
        processedAt: at,
      });
    for (const [position, storageKey] of files.entries())
      em.create(AttachmentEntity, {
        ...owner,
        id: newId('attachment'),
        messageId: message.id,
        position,
        filename: 'a.txt',
        contentType: 'text/plain',
        sizeBytes: 1,
        sha256: Buffer.alloc(32),
        storageKey,
        disposition: 'attachment',
      });
    return message;
  });
}
