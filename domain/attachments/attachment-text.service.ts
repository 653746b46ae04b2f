import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import {
  claimObjects,
  expediteDeletion,
  registerObjects,
  releaseObject,
} from '../stored-objects/unclaimed-objects.ts';
import { type Attachment, AttachmentEntity } from './attachment.entity.ts';
import { MAX_FILE_BYTES, MIB_BYTES } from './attachment-limits.ts';
import type { FileFormat } from './text/detect-format.ts';
import type { FileReader, ReadFile } from './text/file-reader.ts';
import { DOWNLOAD } from './text/unreadable-file.ts';

/** The text of an attachment, whole. */
export interface AttachmentText {
  attachment: Attachment;
  /** What the file is, whatever its media type says. */
  format: FileFormat;
  text: string;
  /** What the text lacks, as sentences. */
  leftOut: string[];
}

export type AttachmentTextService = ReturnType<typeof createAttachmentTextService>;

export interface AttachmentTextOptions {
  database: Database;
  storage: Pick<Storage, 'getBytes' | 'putBytes'>;
  reader: Pick<FileReader, 'read'>;
}

/** Stored as JSON beside the file. */
type StoredText = ReadFile & { readAtMs: number };

/** A million characters have at most 6 bytes each in JSON. */
const MAX_STORED_BYTES = 8 * MIB_BYTES;
const GRACE_MS = 3_600_000;
/** A file whose reading took too long may have met a busy machine, so that it is read again after this time. */
const STOPPED_LIFETIME_MS = 3_600_000;

/**
 * Reads attachments as text. A file is read at the first request, and its text is stored beside it until it is deleted. The
 * text does not count towards `storage_bytes`: it is the service's copy.
 */
export function createAttachmentTextService({ database, storage, reader }: AttachmentTextOptions) {
  /** First requests for the same file share one reading. */
  const reading = new Map<string, Promise<StoredText>>();

  async function readOnce(requested: Attachment): Promise<StoredText> {
    // Another reading may have ended since the row was read.
    const textKey = await findTextKey(requested);
    const attachment = { ...requested, textKey };
    const stored = textKey === null ? undefined : await load(textKey);
    if (stored && !isOutdated(stored)) return stored;
    const name = { contentType: attachment.contentType, filename: attachment.filename };
    const result = await reader.read(attachment.organizationId, name, () =>
      storage.getBytes(attachment.storageKey, MAX_FILE_BYTES),
    );
    const text = { ...result, readAtMs: Date.now() };
    await store(attachment, text);
    return text;
  }

  async function findTextKey({ id, organizationId }: Attachment): Promise<string | null> {
    const row = await database.read({ organizationId }, ({ db }) =>
      db
        .selectFrom('attachments')
        .select('text_key')
        .where('id', '=', id)
        .where('org_id', '=', organizationId)
        .executeTakeFirst(),
    );
    return row?.text_key ?? null;
  }

  /** @returns undefined if the object is missing, as after a restored backup. */
  async function load(textKey: string): Promise<StoredText | undefined> {
    try {
      return JSON.parse((await storage.getBytes(textKey, MAX_STORED_BYTES)).toString()) as StoredText;
    } catch (error) {
      if (error instanceof StorageError && error.failure === 'missing') return undefined;
      throw error;
    }
  }

  /** Stores the text unless another process was faster or the file is gone. The sweep deletes what has no row. */
  async function store({ id, organizationId, textKey: former }: Attachment, text: StoredText): Promise<void> {
    // The service's own record, which a read-only impersonation may cause, too.
    const scope = { organizationId };
    const textKey = `attachments/${newId('attachment')}`;
    await registerObjects(database, scope, [textKey], GRACE_MS);
    await storage.putBytes(textKey, Buffer.from(JSON.stringify(text)), 'application/json');
    await database.transaction(scope, async ({ db }) => {
      const { numUpdatedRows } = await db
        .updateTable('attachments')
        .set({ text_key: textKey })
        .where('id', '=', id)
        .where('org_id', '=', organizationId)
        .where('text_key', 'is not distinct from', former)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return expediteDeletion(db, textKey);
      await claimObjects(db, [textKey]);
      if (former !== null) await releaseObject(db, { organizationId, storageKey: former });
    });
  }

  return {
    /**
     * @throws AppError `not_found`; `unprocessable` with the reason if the file has no text that can be read; `unavailable`
     * if storage fails or too many files are being read.
     */
    async read(scope: Scope, attachmentId: string): Promise<AttachmentText> {
      const attachment = await database.read(scope, ({ db }) =>
        db
          .selectFrom('attachments')
          .select(columnsOf(AttachmentEntity))
          .where('id', '=', attachmentId)
          .where((eb) => eb.and(columnsWithin(scope)))
          .executeTakeFirst(),
      );
      if (!attachment) throw notFound('attachment', attachmentId);
      if (attachment.sizeBytes > MAX_FILE_BYTES)
        throw unprocessable(`It is larger than ${MAX_FILE_BYTES / MIB_BYTES} MiB.`, DOWNLOAD);
      const started = reading.get(attachment.id) ?? readOnce(attachment);
      reading.set(attachment.id, started);
      const result = await started
        .finally(() => {
          if (reading.get(attachment.id) === started) reading.delete(attachment.id);
        })
        .catch(toUnavailable);
      if ('failure' in result) throw unprocessable(result.failure.reason, result.failure.fix);
      const { format, text, leftOut } = result;
      return { attachment, format, text, leftOut };
    },
  };
}

const isOutdated = ({ wasStopped, readAtMs }: StoredText): boolean =>
  wasStopped === true && Date.now() - readAtMs > STOPPED_LIFETIME_MS;

const unprocessable = (reason: string, fix: string): AppError =>
  new AppError('unprocessable', { detail: `The file cannot be read as text. ${reason}`, fix });

function toUnavailable(error: unknown): never {
  if (!(error instanceof StorageError)) throw error;
  throw new AppError('unavailable', {
    detail: 'The file storage is not responding.',
    fix: 'Retry the request later.',
    cause: error,
  });
}
