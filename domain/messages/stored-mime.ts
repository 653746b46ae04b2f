import { Readable } from 'node:stream';
import type { Database } from '../../platform/database/database.ts';
import type { Storage } from '../../platform/storage.ts';
import { type Message, MessageEntity } from './message.entity.ts';
import { buildMime } from './mime.ts';

export interface StoredMime {
  rawKey: string;
  sizeBytes: number;
}

/** Up to here a message is read once for all its recipients; a larger one is streamed for each. */
const MAX_BUFFERED_BYTES = 1024 * 1024;

/**
 * Builds and stores the message once. The key is committed before anybody speaks to a relay, so that every attempt
 * sends exactly these bytes, and `GET /messages/{id}/raw` shows them.
 */
export async function ensureStored(
  database: Database,
  storage: Pick<Storage, 'putStream'>,
  message: Message,
): Promise<StoredMime> {
  if (message.rawKey !== null) return { rawKey: message.rawKey, sizeBytes: message.sizeBytes };
  const rawKey = `raw/sent/${message.id}.eml`;
  const mime = buildMime({
    messageId: message.rfcMessageId ?? message.id,
    date: message.createdAt,
    from: { email: message.fromEmail, ...(message.fromName === null ? {} : { name: message.fromName }) },
    to: message.to,
    cc: message.cc,
    replyTo: message.replyTo,
    subject: message.subject,
    text: message.textBody,
    html: message.htmlBody,
    inReplyTo: message.inReplyTo,
    references: message.references,
    headers: message.headers,
    autoSubmitted: true,
  });
  const { sizeBytes } = await storage.putStream(rawKey, mime, { contentType: 'message/rfc822' });
  await database.systemTransaction(({ em }) =>
    em.nativeUpdate(MessageEntity, { id: message.id, rawKey: null }, { rawKey, sizeBytes }),
  );
  return { rawKey, sizeBytes };
}

export function rawSource(
  storage: Pick<Storage, 'getStream' | 'getBytes'>,
  { rawKey, sizeBytes }: StoredMime,
): () => Promise<Readable> {
  if (sizeBytes > MAX_BUFFERED_BYTES) return () => storage.getStream(rawKey);
  let bytes: Promise<Buffer> | undefined;
  return async () => {
    bytes ??= storage.getBytes(rawKey, MAX_BUFFERED_BYTES);
    return Readable.from([await bytes]);
  };
}
