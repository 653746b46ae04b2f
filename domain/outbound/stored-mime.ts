import { pipeline, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import { type Attachment, AttachmentEntity } from '../attachments/attachment.entity.ts';
import type { DkimKeys } from '../domains/dkim-keys.ts';
import type { Message } from '../messages/message.entity.ts';
import { buildMime, type MimeAttachment, UnsendableMessageError } from '../mime/build-mime.ts';
import type { DkimSigningKey } from '../mime/dkim-signature.ts';
import { domainOf } from '../mime/mail-address.ts';
import { signBytes, signStream } from '../mime/sign-mime.ts';
import { releaseObject } from '../stored-objects/unclaimed-objects.ts';
import { rewriteSubmission } from './rewrite-submission.ts';

export interface StoredMime {
  rawKey: string;
  sizeBytes: number;
  /** Whether the message's row has the key. */
  isKeySaved: boolean;
  /** The bytes, if they were just built and are small. */
  bytes?: Buffer;
}

/** The fields that the MIME message is built from, and its storage key once it is built. */
export type OutgoingMessage = Pick<
  Message,
  | 'id'
  | 'organizationId'
  | 'fromEmail'
  | 'fromName'
  | 'to'
  | 'cc'
  | 'replyTo'
  | 'subject'
  | 'textBody'
  | 'htmlBody'
  | 'headers'
  | 'hasAttachments'
  | 'rfcMessageId'
  | 'inReplyTo'
  | 'references'
  | 'autoSubmitted'
  | 'createdAt'
  | 'submittedKey'
  | 'rawKey'
  | 'sizeBytes'
>;

/** Key of the stored MIME message. It exists before the first attempt to transmit the message. */
export const sentObjectKey = (messageId: string): string => `raw/sent/${messageId}.eml`;

/** A message up to this size is held in memory for all its recipients; a larger one is streamed for each recipient. */
const MAX_BUFFERED_BYTES = 1024 * 1024;

type MimeStorage = Pick<Storage, 'putBytes' | 'putStream' | 'getStream'>;

/**
 * Builds and stores the MIME message, unless it is stored already. The caller commits its key before or with the first
 * attempt, so that every attempt sends exactly these bytes. The API returns the same bytes as the raw message.
 *
 * @throws UnsendableMessageError if no message can be built from the stored data, for example because a file is missing.
 */
export async function ensureMimeStored(
  database: Database,
  storage: MimeStorage,
  message: OutgoingMessage,
  dkimKeys: DkimKeys,
): Promise<StoredMime> {
  if (message.rawKey !== null)
    return { rawKey: message.rawKey, sizeBytes: message.sizeBytes, isKeySaved: true };
  const rawKey = sentObjectKey(message.id);
  const key = await dkimKeys.findSigningKey(message.organizationId, domainOf(message.fromEmail));
  const { submittedKey } = message;
  const sources = createSourceErrors();
  if (submittedKey !== null)
    return sources.explain(() =>
      storeSubmitted(database, storage, { message, rawKey, submittedKey, key, sources }),
    );
  const attachments = message.hasAttachments ? await loadAttachments(database, message.id) : [];
  const stored = await sources.explain(() =>
    storeBuilt(storage, rawKey, { message, attachments, key, sources }),
  );
  return { rawKey, isKeySaved: false, ...stored };
}

/** Changes that give a message the key of its stored MIME message, unless it has one. */
export const withRawKey = (rawKey: string, sizeBytes: number) => ({
  raw_key: sql<string>`coalesce(raw_key, ${rawKey}::text)`,
  size_bytes: sql<number>`case when raw_key is null then ${sizeBytes}::int else size_bytes end`,
});

export async function saveRawKey(
  { db }: Database,
  messageId: string,
  { rawKey, sizeBytes }: StoredMime,
): Promise<void> {
  await db.updateTable('messages').set(withRawKey(rawKey, sizeBytes)).where('id', '=', messageId).execute();
}

interface SubmittedMime {
  message: OutgoingMessage;
  rawKey: string;
  submittedKey: string;
  key: DkimSigningKey | null;
  sources: SourceErrors;
}

/** Stores the rewritten bytes of a submitted message and releases the object with the original bytes. */
async function storeSubmitted(
  database: Database,
  storage: MimeStorage,
  { message, rawKey, submittedKey, key, sources }: SubmittedMime,
): Promise<StoredMime> {
  const messageId = message.rfcMessageId ?? message.id;
  const write = () => {
    const mime = rewriteSubmission({ messageId, date: message.createdAt, inboxEmail: message.fromEmail });
    mime.once('error', sources.note);
    storage.getStream(submittedKey).then(
      (source) => pipeline(source, mime, () => undefined),
      (error: Error) => mime.destroy(error),
    );
    return mime;
  };
  const mime = await signStream(write, key, message.createdAt);
  const { sizeBytes } = await storage.putStream(rawKey, mime, { contentType: 'message/rfc822' });
  await database.systemTransaction(async ({ db }) => {
    await db
      .updateTable('messages')
      .set({ raw_key: rawKey, size_bytes: sizeBytes, submitted_key: null })
      .where('id', '=', message.id)
      .execute();
    await releaseObject(db, { organizationId: message.organizationId, storageKey: submittedKey });
  });
  return { rawKey, sizeBytes, isKeySaved: true };
}

/** Stores a small message in one request and streams a larger one in parts. */
async function storeBuilt(
  storage: MimeStorage,
  rawKey: string,
  {
    message,
    attachments,
    key,
    sources,
  }: {
    message: OutgoingMessage;
    attachments: Attachment[];
    key: DkimSigningKey | null;
    sources: SourceErrors;
  },
): Promise<Pick<StoredMime, 'sizeBytes' | 'bytes'>> {
  const files = attachments.map((attachment) => toMimeAttachment(storage, attachment, sources));
  const write = () => buildMessageMime(message, files);
  const bodyCharacters = (message.textBody?.length ?? 0) + (message.htmlBody?.length ?? 0);
  const fileBytes = attachments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (bodyCharacters + fileBytes > MAX_BUFFERED_BYTES / 4) {
    const mime = await signStream(write, key, message.createdAt);
    const { sizeBytes } = await storage.putStream(rawKey, mime, { contentType: 'message/rfc822' });
    return { sizeBytes };
  }
  const bytes = await signBytes(await buffer(write()), key, message.createdAt);
  await storage.putBytes(rawKey, bytes, 'message/rfc822');
  return { sizeBytes: bytes.length, bytes };
}

function loadAttachments({ db }: Database, messageId: string): Promise<Attachment[]> {
  return db
    .selectFrom('attachments')
    .select(columnsOf(AttachmentEntity))
    .where('message_id', '=', messageId)
    .orderBy('position')
    .execute();
}

/** Reads the file from storage when the MIME stream reaches it. */
function toMimeAttachment(
  storage: Pick<Storage, 'getStream'>,
  attachment: Attachment,
  sources: SourceErrors,
): MimeAttachment {
  const { filename, contentType, contentId, disposition, storageKey } = attachment;
  const open = () =>
    storage.getStream(storageKey).catch((error: unknown) => {
      sources.note(error);
      throw error;
    });
  return { filename, contentType, contentId, disposition, open };
}

/** The errors of the streams that a message is built from. Storage does not report why its source failed. */
interface SourceErrors {
  note(error: unknown): void;
  /** @throws UnsendableMessageError if `work` fails because of an error that a retry cannot solve. */
  explain<T>(work: () => Promise<T>): Promise<T>;
}

function createSourceErrors(): SourceErrors {
  let noted: unknown;
  return {
    note(error) {
      noted ??= error;
    },
    async explain(work) {
      try {
        return await work();
      } catch (error) {
        if (noted instanceof StorageError && noted.failure === 'missing')
          throw new UnsendableMessageError('A file of the message is missing from storage.');
        if (noted instanceof AppError && noted.status < 500) throw new UnsendableMessageError(noted.detail);
        throw noted ?? error;
      }
    },
  };
}

function buildMessageMime(message: OutgoingMessage, attachments: MimeAttachment[]): Readable {
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
    autoSubmitted: message.autoSubmitted,
    attachments,
  });
}

/** Returns a function that opens the stored message. Small messages are read from storage once. */
export function createRawSource(
  storage: Pick<Storage, 'getStream' | 'getBytes'>,
  { rawKey, sizeBytes, bytes }: StoredMime,
): () => Promise<Readable> {
  if (sizeBytes > MAX_BUFFERED_BYTES) return () => storage.getStream(rawKey);
  let cached = bytes ? Promise.resolve(bytes) : undefined;
  return async () => {
    cached ??= storage.getBytes(rawKey, MAX_BUFFERED_BYTES);
    return Readable.from([await cached]);
  };
}
