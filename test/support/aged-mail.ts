import { randomBytes } from 'node:crypto';
import type { Updateable } from 'kysely';
import type { Inbox } from '../../domain/inboxes/inbox.entity.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { type Thread, ThreadEntity } from '../../domain/messages/thread.entity.ts';
import { addToThread, startThread } from '../../domain/messages/thread-summary.ts';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import type { Tables } from '../../platform/database/tables.ts';
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
  fields?: Updateable<Tables['messages']>;
}

/** Creates a message dated `at` with its dependent rows, in its own thread unless one is given. */
export async function createAgedMail(
  worker: Database,
  inbox: Inbox,
  { at, thread: given, direction = 'inbound', correspondent = 'ada@people.example', ...mail }: AgedMail,
): Promise<RowOf<typeof MessageEntity>> {
  const { labels = [], files = [], rawKey = null, fields = {} } = mail;
  const owner = {
    org_id: inbox.organizationId,
    env_id: inbox.environmentId,
    inbox_id: inbox.id,
  };
  const isInbound = direction === 'inbound';
  return worker.systemTransaction(async ({ db }) => {
    const place = given
      ? {
          thread: await db
            .selectFrom('threads')
            .select(columnsOf(ThreadEntity))
            .where('id', '=', given.id)
            .executeTakeFirstOrThrow(),
          isNew: false,
        }
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
    const message = await db
      .insertInto('messages')
      .values({
        ...owner,
        id,
        thread_id: thread.id,
        direction,
        status: isInbound ? 'received' : 'sent',
        from_email: isInbound ? correspondent : inbox.email,
        from_name: null,
        to: json([{ email: isInbound ? inbox.email : correspondent }]),
        cc: json([]),
        bcc: json([]),
        reply_to: json([]),
        subject: 'Aged',
        preview,
        text_body: 'words',
        headers: json({}),
        labels,
        has_attachments: hasAttachments,
        rfc_message_id: null,
        in_reply_to: null,
        raw_key: rawKey,
        created_at: at,
        received_at: isInbound ? at : null,
        sent_at: isInbound ? null : at,
        ...fields,
      })
      .returning(columnsOf(MessageEntity))
      .executeTakeFirstOrThrow();
    if (!isInbound)
      await db
        .insertInto('message_recipients')
        .values({
          message_id: message.id,
          position: 0,
          org_id: inbox.organizationId,
          field: 'to',
          email: correspondent,
          status: 'sent',
        })
        .execute();
    if (isInbound && rawKey !== null)
      await db
        .insertInto('inbound_receipts')
        .values({
          ...owner,
          id: createIdAt('receipt', at, random),
          kind: 'mail',
          message_id: message.id,
          raw_key: rawKey,
          size_bytes: 1,
          sha256: Buffer.alloc(32),
          mail_from: correspondent,
          rcpt_to: inbox.email,
          client_ip: '192.0.2.1',
          status: 'processed',
          received_at: at,
          processed_at: at,
        })
        .execute();
    for (const [position, storageKey] of files.entries())
      await db
        .insertInto('attachments')
        .values({
          ...owner,
          id: newId('attachment'),
          message_id: message.id,
          position,
          filename: 'a.txt',
          content_type: 'text/plain',
          size_bytes: 1,
          sha256: Buffer.alloc(32),
          storage_key: storageKey,
          disposition: 'attachment',
        })
        .execute();
    return message;
  });
}
