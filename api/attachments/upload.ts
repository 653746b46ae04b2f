import type { MultipartFile } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import { fileTooLarge, MAX_FILE_BYTES } from '../../domain/attachments/attachment-limits.ts';
import { findMediaTypeError } from '../../domain/attachments/media-type.ts';
import type { FileMetadata, StoredFile } from '../../domain/attachments/stored-file.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { toFileName } from './body-files.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The file of an upload, its bytes in storage. */
    upload: StoredFile | undefined;
  }
}

/** Boundaries and the headers of a part. */
const FORM_OVERHEAD_BYTES = 64 * 1024;

/** One byte more than a file may have, to see that it has too many. */
export const UPLOAD_LIMITS = {
  fileSize: MAX_FILE_BYTES + 1,
  files: 2,
  fields: 1,
  parts: 3,
  fieldSize: 1024,
  headerPairs: 20,
};

/**
 * For `config.prepare` of an upload: streams its one file to storage. The body is known only when it has been read, so
 * what stands for it (as when an Idempotency-Key is compared) is put in its place: name, type and hash of the file.
 */
export function storeUpload(attachments: AttachmentService): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    if (!request.isMultipart?.()) throw notMultipart();
    if (Number(request.headers['content-length'] ?? 0) > MAX_FILE_BYTES + FORM_OVERHEAD_BYTES)
      throw tooLarge();
    const { inboxId } = request.params as { inboxId: string };
    const upload = await readSingleFile(request, (metadata, content) =>
      attachments.storeUpload(request.scope, inboxId, metadata, content),
    ).catch(async ({ stored, error }: UploadFailure) => {
      if (stored) await attachments.discard(request.scope, stored.storageKey);
      // What still comes is read and dropped: a client that is cut off while it sends never sees the answer.
      request.raw.resume();
      throw error;
    });
    request.upload = upload;
    const { filename, contentType, sha256 } = upload;
    request.body = { filename, contentType, sha256: Buffer.from(sha256).toString('hex') };
  };
}

interface UploadFailure {
  error: unknown;
  /** Set where the file was stored before something else turned out to be wrong. */
  stored: StoredFile | undefined;
}

type StoreFile = (metadata: FileMetadata, content: MultipartFile['file']) => Promise<StoredFile>;

/** @throws Failure */
async function readSingleFile(request: FastifyRequest, put: StoreFile): Promise<StoredFile> {
  let stored: StoredFile | undefined;
  const parts = request.parts();
  try {
    for (;;) {
      const { value: part, done } = await parts.next().catch(throwMalformedForm);
      if (done) break;
      if (part.type !== 'file')
        throw singleFileRequired(`has the field ${part.fieldname.slice(0, 64)}, which is not a file`);
      if (stored) {
        part.file.resume();
        throw singleFileRequired('holds more than one file');
      }
      stored = await storePart(part, put);
    }
    if (!stored) throw singleFileRequired('holds no file');
    return stored;
  } catch (error) {
    throw { error, stored } satisfies UploadFailure;
  }
}

async function storePart(part: MultipartFile, put: StoreFile): Promise<StoredFile> {
  let cut: Error | undefined;
  part.file.once('error', (error) => {
    cut = error;
  });
  try {
    return await put(readPartMetadata(part), part.file);
  } catch (error) {
    part.file.resume();
    return cut && cut === error ? throwMalformedForm() : Promise.reject(error);
  }
}

function readPartMetadata({ filename = '', mimetype }: MultipartFile): FileMetadata {
  if (/[\p{Cc}]/u.test(filename))
    throw invalid('/body/file', 'has a name with control characters', 'Rename the file.');
  const fault = findMediaTypeError(mimetype);
  if (fault !== undefined)
    throw invalid(
      '/body/file',
      `has a content type that is none: it ${fault}`,
      'Correct the Content-Type of the part.',
    );
  return {
    filename: toFileName(unescapeFormFileName(filename)),
    contentType: mimetype,
    contentId: null,
    disposition: 'attachment',
  };
}

/**
 * Browsers, fetch and curl write a quote in a form's file name as `%22` (WHATWG, "multipart/form-data encoding"). Line
 * ends, which they write so too, stay as they are: no file is named so.
 */
function unescapeFormFileName(filename: string): string {
  return filename.replaceAll('%22', '"');
}

function throwMalformedForm(): never {
  throw invalid(
    '/body',
    'is no whole multipart/form-data: it is malformed or ends too early',
    'Send the form again, whole, with one file.',
  );
}

function singleFileRequired(message: string): AppError {
  return invalid(
    '/body',
    message,
    'Send a form with exactly one file and no other field; upload files one by one.',
  );
}

function tooLarge(): AppError {
  return fileTooLarge(MAX_FILE_BYTES, 'Send a smaller file, or a link to it.');
}

function notMultipart(): AppError {
  return new AppError('unsupported_media_type', {
    detail: 'An upload is a form with one file.',
    fix: 'Send "Content-Type: multipart/form-data" with one file.',
  });
}
