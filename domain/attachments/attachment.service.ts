import { Readable } from 'node:stream';
import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { expediteDeletion, registerObjects } from '../stored-objects/unclaimed-objects.ts';
import { requireStorageQuota } from '../usage/storage-quota.ts';
import { attachFiles } from './attach-files.ts';
import { type Attachment, AttachmentEntity } from './attachment.entity.ts';
import { fileTooLarge, MAX_FILE_BYTES } from './attachment-limits.ts';
import type { FileMetadata, StoredFile } from './stored-file.ts';

/** Where a file can be had without a credential, until then. */
export interface FileLink {
  url: string;
  expiresAt: Date;
}

export interface AttachmentService {
  /**
   * Streams a file to storage. Belongs before the transaction that makes a row of it; without one the sweep removes the
   * bytes.
   *
   * @throws AppError `not_found` for the inbox, `payload_too_large` over 25 MiB, `usage_limit_exceeded`, `unavailable`;
   * errors of `content`.
   * Nothing is stored then.
   */
  storeUpload(scope: Scope, inboxId: string, facts: FileMetadata, content: Readable): Promise<StoredFile>;
  /** The same for files that are in memory. @throws AppError `usage_limit_exceeded`, `unavailable`. */
  storeFiles(scope: Scope, files: { facts: FileMetadata; bytes: Buffer }[]): Promise<StoredFile[]>;
  /** Gives up bytes that were put and are not wanted after all. */
  discard(scope: Scope, storageKey: string): Promise<void>;
  /**
   * Makes an attachment of an upload: it waits 24 h for a draft or message.
   *
   * @throws AppError `usage_limit_exceeded`; the sweep removes the bytes.
   */
  createUpload(scope: Scope, inboxId: string, file: StoredFile): Promise<Attachment>;
  /** @throws AppError `not_found`. */
  get(scope: Scope, attachmentId: string): Promise<{ attachment: Attachment; link: FileLink }>;
}

export const LINK_LIFETIME_MS = 15 * 60_000;
/** Uploads may take long; what came within a request is attached seconds later. */
const UPLOAD_GRACE_MS = 24 * 3_600_000;
const INLINE_GRACE_MS = 3_600_000;
const MAX_CONCURRENT_PUTS = 4;

type FileStorage = Pick<Storage, 'putStream' | 'putBytes' | 'presignGet'>;

export interface AttachmentServiceOptions {
  database: Database;
  storage: FileStorage;
}

export function createAttachmentService({ database, storage }: AttachmentServiceOptions): AttachmentService {
  const giveUp = async (scope: Scope, storageKey: string) => {
    await database.transaction(scope, ({ em }) => expediteDeletion(em, storageKey));
  };

  return {
    async storeUpload(scope, inboxId, facts, content) {
      const storageKey = newStorageKey();
      await database.transaction(scope, async ({ em }) => {
        await findInbox(em, scope, inboxId);
        // How large it is shows when it is stored; where nothing fits any more it is not read.
        await requireStorageQuota(em, scope.organizationId, 1);
      });
      await registerObjects(database, scope, [storageKey], UPLOAD_GRACE_MS);
      const watched = limitSize(content, MAX_FILE_BYTES);
      try {
        const stored = await storage.putStream(storageKey, watched.stream, {
          contentType: facts.contentType,
        });
        return { ...facts, storageKey, ...stored };
      } catch (error) {
        await giveUp(scope, storageKey);
        throw watched.fault() ?? toUnavailable(error);
      }
    },

    async storeFiles(scope, files) {
      if (files.length === 0) return [];
      const sizeBytes = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
      await database.transaction(scope, ({ em }) => requireStorageQuota(em, scope.organizationId, sizeBytes));
      const keyed = files.map((file) => ({ ...file, storageKey: newStorageKey() }));
      await registerObjects(
        database,
        scope,
        keyed.map(({ storageKey }) => storageKey),
        INLINE_GRACE_MS,
      );
      return mapConcurrently(keyed, MAX_CONCURRENT_PUTS, async ({ facts, bytes, storageKey }) => {
        const stored = await storage
          .putBytes(storageKey, bytes, facts.contentType)
          .catch((error: unknown) => {
            throw toUnavailable(error);
          });
        return { ...facts, storageKey, ...stored };
      });
    },

    discard: giveUp,

    createUpload: (scope, inboxId, file) =>
      database.transaction(scope, async ({ em }) => {
        const inbox = await findInbox(em, scope, inboxId);
        const [upload] = await attachFiles(em, { scope, inbox, files: [{ kind: 'stored', file }] });
        return upload as Attachment;
      }),

    async get(scope, attachmentId) {
      const attachment = await database.transaction(scope, ({ em }) =>
        em.findOne(AttachmentEntity, { id: attachmentId, ...withinScope(scope) }),
      );
      if (!attachment) throw notFound('attachment', attachmentId);
      const { storageKey, filename, contentType } = attachment;
      return { attachment, link: await createFileLink(storage, storageKey, { filename, contentType }) };
    },
  };
}

/** A link to an object for {@link LINK_LIFETIME_MS}. */
export async function createFileLink(
  storage: Pick<Storage, 'presignGet'>,
  storageKey: string,
  file: { filename: string; contentType: string },
): Promise<FileLink> {
  const expiresAt = new Date(Date.now() + LINK_LIFETIME_MS);
  const url = await storage.presignGet(storageKey, { ...file, expiresInSeconds: LINK_LIFETIME_MS / 1000 });
  return { url, expiresAt };
}

/** Nobody guesses it, and it says nothing of the file. */
function newStorageKey(): string {
  return `attachments/${newId('attachment')}`;
}

/** Passes bytes on up to a limit; afterwards tells why the source ended early, which storage wraps in words of its own. */
function limitSize(content: Readable, maxBytes: number): { stream: Readable; fault(): unknown } {
  let fault: unknown;
  async function* pass(): AsyncGenerator<Buffer> {
    let sizeBytes = 0;
    try {
      for await (const chunk of content as AsyncIterable<Buffer>) {
        sizeBytes += chunk.length;
        if (sizeBytes > maxBytes) throw fileTooLarge(maxBytes, 'Send a smaller file, or a link to it.');
        yield chunk;
      }
    } catch (error) {
      fault = error;
      throw error;
    }
  }
  return { stream: Readable.from(pass(), { objectMode: false }), fault: () => fault };
}

function toUnavailable(error: unknown): unknown {
  if (!(error instanceof StorageError)) return error;
  return new AppError('unavailable', {
    detail: 'The file storage does not answer.',
    fix: 'Repeat the request later.',
    cause: error,
  });
}

async function mapConcurrently<T, R>(items: T[], lanes: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  const lane = async () => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}
