import { Readable } from 'node:stream';
import { mapConcurrently } from '../../platform/concurrency/map-concurrently.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import { findInbox, requireActive } from '../inboxes/find-inbox.ts';
import { expediteDeletion, registerObjects } from '../stored-objects/unclaimed-objects.ts';
import { requireStorageQuota } from '../usage/resource-quotas.ts';
import { attachFiles, saveAttachments } from './attach-files.ts';
import { type Attachment, AttachmentEntity } from './attachment.entity.ts';
import { fileTooLarge, MAX_FILE_BYTES } from './attachment-limits.ts';
import type { FileMetadata, StoredFile } from './stored-file.ts';

/** A link that downloads a file without a credential until it expires. */
export interface FileLink {
  url: string;
  expiresAt: Date;
}

export type AttachmentService = ReturnType<typeof createAttachmentService>;

const LINK_LIFETIME_MS = 15 * 60_000;
/**
 * For staff who impersonate a member: storage does not know about the impersonation, so a link works without their
 * token, even after the impersonation has ended. Long enough to follow the link immediately; a download that has
 * started continues.
 */
const IMPERSONATION_LINK_LIFETIME_MS = 10_000;
/** An upload may take a long time; inline files are attached within seconds. */
const UPLOAD_GRACE_MS = 24 * 3_600_000;
const INLINE_GRACE_MS = 3_600_000;
const MAX_CONCURRENT_PUTS = 4;

type FileStorage = Pick<Storage, 'putStream' | 'putBytes' | 'presignGet'>;

export interface AttachmentServiceOptions {
  database: Database;
  storage: FileStorage;
}

export function createAttachmentService({ database, storage }: AttachmentServiceOptions) {
  /** Makes stored bytes due for deletion because the request failed. */
  const discard = async (scope: Scope, storageKey: string): Promise<void> => {
    await database.transaction(scope, ({ db }) => expediteDeletion(db, storageKey));
  };

  return {
    /**
     * Streams a file to storage. Call it before the transaction that creates the row. If no row is created, the sweep
     * deletes the bytes.
     *
     * @throws AppError `not_found` for the inbox, `payload_too_large` over 25 MiB, `usage_limit_exceeded`, `unavailable`;
     * errors that `content` emits. Nothing is stored in these cases.
     */
    async storeUpload(
      scope: Scope,
      inboxId: string,
      metadata: FileMetadata,
      content: Readable,
    ): Promise<StoredFile> {
      const storageKey = newStorageKey();
      await database.transaction(scope, async (transaction) => {
        requireActive(await findInbox(transaction.db, scope, inboxId));
        // The size is known only after storing. If the quota is already exhausted, the file is not read.
        await requireStorageQuota(transaction.db, scope.organizationId, 1);
      });
      await registerObjects(database, scope, [storageKey], UPLOAD_GRACE_MS);
      const limited = limitSize(content, MAX_FILE_BYTES);
      try {
        const stored = await storage.putStream(storageKey, limited.stream, {
          contentType: metadata.contentType,
        });
        return { ...metadata, storageKey, ...stored };
      } catch (error) {
        await discard(scope, storageKey);
        throw limited.sourceError() ?? toUnavailable(error);
      }
    },

    /** Stores files that are in memory. @throws AppError `usage_limit_exceeded`, `unavailable`. */
    async storeFiles(
      scope: Scope,
      files: { metadata: FileMetadata; bytes: Buffer }[],
    ): Promise<StoredFile[]> {
      if (files.length === 0) return [];
      const sizeBytes = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
      await database.transaction(scope, ({ db }) => requireStorageQuota(db, scope.organizationId, sizeBytes));
      const keyed = files.map((file) => ({ ...file, storageKey: newStorageKey() }));
      await registerObjects(
        database,
        scope,
        keyed.map(({ storageKey }) => storageKey),
        INLINE_GRACE_MS,
      );
      return mapConcurrently(keyed, MAX_CONCURRENT_PUTS, async ({ metadata, bytes, storageKey }) => {
        const stored = await storage
          .putBytes(storageKey, bytes, metadata.contentType)
          .catch((error: unknown) => {
            throw toUnavailable(error);
          });
        return { ...metadata, storageKey, ...stored };
      });
    },

    discard,

    /**
     * Creates the attachment for an upload. It is deleted after 24 hours if no draft or message uses it.
     *
     * @throws AppError `usage_limit_exceeded`; the sweep then deletes the bytes.
     */
    createUpload: (scope: Scope, inboxId: string, file: StoredFile): Promise<Attachment> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const inbox = requireActive(await findInbox(transaction.db, scope, inboxId));
        const attachments = await attachFiles(db, { scope, inbox, files: [{ kind: 'stored', file }] });
        await saveAttachments(db, attachments);
        const [upload] = attachments;
        return upload as Attachment;
      }),

    /** @throws AppError `not_found`. */
    async get(scope: Scope, attachmentId: string): Promise<{ attachment: Attachment; link: FileLink }> {
      const attachment = await database.read(scope, ({ db }) =>
        db
          .selectFrom('attachments')
          .select(columnsOf(AttachmentEntity))
          .where('id', '=', attachmentId)
          .where((eb) => eb.and(columnsWithin(scope)))
          .executeTakeFirst(),
      );
      if (!attachment) throw notFound('attachment', attachmentId);
      const { storageKey, filename, contentType } = attachment;
      const link = await createFileLink(storage, scope, { storageKey, filename, contentType });
      return { attachment, link };
    },
  };
}

/**
 * Creates a download link that expires after {@link LINK_LIFETIME_MS}, and no later than the impersonation that
 * requested it.
 */
export async function createFileLink(
  storage: Pick<Storage, 'presignGet'>,
  { impersonation }: Pick<Scope, 'impersonation'>,
  { storageKey, ...file }: { storageKey: string; filename: string; contentType: string },
): Promise<FileLink> {
  const now = Date.now();
  const lifetimeMs = impersonation
    ? Math.min(IMPERSONATION_LINK_LIFETIME_MS, impersonation.expiresAt.getTime() - now)
    : LINK_LIFETIME_MS;
  const expiresInSeconds = Math.max(1, Math.floor(lifetimeMs / 1_000));
  const url = await storage.presignGet(storageKey, { ...file, expiresInSeconds });
  return { url, expiresAt: new Date(now + expiresInSeconds * 1_000) };
}

/** The key is unguessable and reveals nothing about the file. */
function newStorageKey(): string {
  return `attachments/${newId('attachment')}`;
}

/**
 * Passes bytes through up to a limit. `sourceError` is the original error of the source, which storage replaces with
 * its own error.
 */
function limitSize(content: Readable, maxBytes: number): { stream: Readable; sourceError(): unknown } {
  let sourceError: unknown;
  async function* pass(): AsyncGenerator<Buffer> {
    let sizeBytes = 0;
    try {
      for await (const chunk of content as AsyncIterable<Buffer>) {
        sizeBytes += chunk.length;
        if (sizeBytes > maxBytes) throw fileTooLarge(maxBytes, 'Send a smaller file, or send a link to it.');
        yield chunk;
      }
    } catch (error) {
      sourceError = error;
      throw error;
    }
  }
  return { stream: Readable.from(pass(), { objectMode: false }), sourceError: () => sourceError };
}

function toUnavailable(error: unknown): unknown {
  if (!(error instanceof StorageError)) return error;
  return new AppError('unavailable', {
    detail: 'The file storage is not responding.',
    fix: 'Retry the request later.',
    cause: error,
  });
}
