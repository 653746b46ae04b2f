import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Database } from '../../platform/database/database.ts';
import type { Storage } from '../../platform/storage.ts';
import { type Message, MessageEntity } from './message.entity.ts';
import { buildMime } from './mime.ts';

export interface StoredMime {
  rawKey: string;
  sizeBytes: number;
  /** The bytes themselves, where they were just built and are small. */
  bytes?: Buffer;
}

/** Up to here a message is held in memory once for all its recipients; a larger one is streamed for each. */
const MAX_BUFFERED_BYTES = 1024 * 1024;

/**
 * Builds and stores the message once. The key is committed before anybody speaks to a relay, so that every attempt
 * sends exactly these bytes, and they are what is shown as the raw message.
 */
export async function ensureStored(
  database: Database,
  storage: Pick<Storage, 'putBytes' | 'putStream'>,
  message: Message,
): Promise<StoredMime> {
  if (message.rawKey !== null) return { rawKey: message.rawKey, sizeBytes: message.sizeBytes };
  const rawKey = `raw/sent/${message.id}.eml`;
  const stored = await store(storage, rawKey, message);
  await database.autocommit((em) =>
    em.nativeUpdate(MessageEntity, { id: message.id, rawKey: null }, { rawKey, sizeBytes: stored.sizeBytes }),
  );
  return { rawKey, ...stored };
}

/** Text that fits is put in one request; what does not is streamed in parts. */
async function store(
  storage: Pick<Storage, 'putBytes' | 'putStream'>,
  rawKey: string,
  message: Message,
): Promise<Omit<StoredMime, 'rawKey'>> {
  const mime = mimeOf(message);
  const bodyCharacters = (message.textBody?.length ?? 0) + (message.htmlBody?.length ?? 0);
  if (bodyCharacters > MAX_BUFFERED_BYTES / 4) {
    const { sizeBytes } = await storage.putStream(rawKey, mime, { contentType: 'message/rfc822' });
    return { sizeBytes };
  }
  const bytes = await buffer(mime);
  await storage.putBytes(rawKey, bytes, 'message/rfc822');
  return { sizeBytes: bytes.length, bytes };
}

function mimeOf(message: Message): Readable {
  return buildMime({
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
}

export function rawSource(
  storage: Pick<Storage, 'getStream' | 'getBytes'>,
  { rawKey, sizeBytes, bytes }: StoredMime,
): () => Promise<Readable> {
  if (sizeBytes > MAX_BUFFERED_BYTES) return () => storage.getStream(rawKey);
  let held = bytes ? Promise.resolve(bytes) : undefined;
  return async () => {
    held ??= storage.getBytes(rawKey, MAX_BUFFERED_BYTES);
    return Readable.from([await held]);
  };
}
