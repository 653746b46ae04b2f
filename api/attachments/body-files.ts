import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import { fileTooLarge, MAX_INLINE_FILE_BYTES } from '../../domain/attachments/attachment-limits.ts';
import {
  type FileMetadata,
  type FileToAttach,
  findMediaTypeError,
  type StoredFile,
} from '../../domain/attachments/stored-file.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import { sanitizeFileName } from '../../domain/mime/file-name.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import type { AttachmentInput } from './attachments.schemas.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The files in `attachments` of the body, with their bytes in storage; undefined if the body omits them. */
    filesToAttach: FileToAttach[] | undefined;
  }
}

type Entry = Static<typeof AttachmentInput>;

/**
 * For `config.prepare` of routes whose body has `attachments`: stores the files that are sent as base64 before the
 * handler's transaction begins.
 */
export function storeBodyFiles(attachments: AttachmentService): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    const entries = (request.body as { attachments?: Entry[] | null } | null)?.attachments;
    if (entries === undefined) return;
    const files = (entries ?? []).map(parseEntry);
    const stored = await attachments.storeFiles(
      request.scope,
      files.filter((file) => 'bytes' in file),
    );
    const next = stored.values();
    request.filesToAttach = files.map((file) => takeStored(file, next));
  };
}

/**
 * Stores the files of several messages that are sent as base64, together.
 *
 * @returns for each message its files, or why they are refused.
 */
export async function storeEntries(
  attachments: AttachmentService,
  scope: Scope,
  messages: readonly (readonly Entry[])[],
): Promise<(FileToAttach[] | AppError)[]> {
  const parsed = messages.map((entries) => tryRefusable(() => entries.map(parseEntry)));
  const inline = parsed.flatMap((files) =>
    files instanceof AppError ? [] : files.filter((file) => 'bytes' in file),
  );
  const stored = await attachments.storeFiles(scope, inline).catch(asRefusal);
  const next = stored instanceof AppError ? undefined : stored.values();
  return parsed.map((files) => {
    if (files instanceof AppError) return files;
    if (stored instanceof AppError && files.some((file) => 'bytes' in file)) return stored;
    return files.map((file) => takeStored(file, next));
  });
}

function tryRefusable<Result>(work: () => Result): Result | AppError {
  try {
    return work();
  } catch (error) {
    return asRefusal(error);
  }
}

/** @throws the error itself if it is an error of the service. */
function asRefusal(error: unknown): AppError {
  if (error instanceof AppError && error.status < 500) return error;
  throw error;
}

/** The file with its bytes in storage. @throws Error rather than send a message without one of its files. */
function takeStored(file: ParsedEntry, stored: Iterator<StoredFile> | undefined): FileToAttach {
  if (!('bytes' in file)) return file;
  const next = stored?.next();
  if (!next || next.done) throw new Error('A file of the request was not stored');
  return { kind: 'stored', file: next.value };
}

type ParsedEntry = { metadata: FileMetadata; bytes: Buffer } | Extract<FileToAttach, { kind: 'existing' }>;

/** @throws AppError `validation_error`, `payload_too_large`. */
function parseEntry(entry: Entry, index: number): ParsedEntry {
  const path = `/body/attachments/${index}`;
  const { content, attachment_id: attachmentId } = entry;
  if ((content === undefined) === (attachmentId === undefined))
    throw invalid(path, 'must have either content or attachment_id', 'Set one of the two.');
  const changes = readMetadata(entry, path);
  if (attachmentId !== undefined) return { kind: 'existing', attachmentId, changes };
  const {
    filename,
    contentType = 'application/octet-stream',
    contentId = null,
    disposition = 'attachment',
  } = changes;
  if (filename === undefined)
    throw invalid(`${path}/filename`, 'is required with content', 'Set a file name.');
  const metadata = { filename, contentType, contentId, disposition };
  return { metadata, bytes: decodeBase64(content ?? '', `${path}/content`) };
}

function readMetadata(entry: Entry, path: string): Partial<FileMetadata> {
  const { filename, content_type: contentType, content_id: contentId, disposition } = entry;
  const error = contentType === undefined ? undefined : findMediaTypeError(contentType);
  if (error !== undefined)
    throw invalid(`${path}/content_type`, error, 'Set the media type of the file, or omit it.');
  return {
    ...(filename === undefined ? {} : { filename: toFileName(filename) }),
    ...(contentType === undefined ? {} : { contentType }),
    ...(contentId === undefined ? {} : { contentId }),
    ...(contentId ? { disposition: 'inline' } : {}),
    ...(disposition === undefined ? {} : { disposition }),
  };
}

/** Replaces a name that consists only of a path. */
export function toFileName(given: string): string {
  return sanitizeFileName(given) ?? 'attachment';
}

/** Buffer ignores invalid characters, so the text is valid only if the bytes encode back to it. */
function decodeBase64(content: string, path: string): Buffer {
  const bytes = Buffer.from(content, 'base64');
  if (bytes.toString('base64') !== content)
    throw invalid(
      path,
      'is not base64',
      'Encode the bytes as in RFC 4648 section 4: with padding, without line ends or a data: prefix.',
    );
  if (bytes.length > MAX_INLINE_FILE_BYTES)
    throw fileTooLarge(
      MAX_INLINE_FILE_BYTES,
      'Upload it with POST /api/v1/inboxes/{inboxId}/attachments (up to 25 MiB) and use its attachment_id.',
    );
  return bytes;
}
