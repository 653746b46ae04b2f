import type { MultipartFile } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import { fileTooLarge, MAX_FILE_BYTES } from '../../domain/attachments/attachment-limits.ts';
import {
  type FileMetadata,
  findMediaTypeError,
  type StoredFile,
} from '../../domain/attachments/stored-file.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { toFileName } from './body-files.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The uploaded file, with its bytes in storage. */
    upload: StoredFile | undefined;
  }
}

/** Space for the boundaries and part headers of the form. */
const FORM_OVERHEAD_BYTES = 64 * 1024;

/** The file limit is one byte above the allowed size, to detect a file that is too large. */
export const UPLOAD_LIMITS = {
  fileSize: MAX_FILE_BYTES + 1,
  files: 2,
  fields: 1,
  parts: 3,
  fieldSize: 1024,
  headerPairs: 20,
};

/**
 * For `config.prepare` of an upload: streams its file to storage, and replaces the body with the name, type and hash of
 * the file, so that requests with the same Idempotency-Key can be compared.
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
      // Read and discard the rest: a client whose connection is closed while it is sending never sees the response.
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
  /** Set if the file was stored before the error. */
  stored: StoredFile | undefined;
}

export type StoreFile = (metadata: FileMetadata, content: MultipartFile['file']) => Promise<StoredFile>;

/** @throws UploadFailure */
async function readSingleFile(request: FastifyRequest, put: StoreFile): Promise<StoredFile> {
  let stored: StoredFile | undefined;
  const parts = request.parts();
  try {
    for (;;) {
      // It may have failed before the parser began.
      if (request.bodyClaim?.failure) throw request.bodyClaim.failure;
      const { value: part, done } = await parts.next().catch(throwMalformedForm);
      if (done) break;
      if (part.type !== 'file')
        throw singleFileRequired(`has the field ${part.fieldname.slice(0, 64)}, which is not a file`);
      if (stored) {
        part.file.resume();
        throw singleFileRequired('contains more than one file');
      }
      stored = await storePart(part, put);
    }
    if (!stored) throw singleFileRequired('contains no file');
    return stored;
  } catch (error) {
    throw { error, stored } satisfies UploadFailure;
  }
}

/** Stores one file of a form, whatever its part is named. @throws AppError for a wrong part. */
export async function storePart(part: MultipartFile, put: StoreFile): Promise<StoredFile> {
  let streamError: Error | undefined;
  part.file.once('error', (error) => {
    streamError = error;
  });
  try {
    return await put(readPartMetadata(part), part.file);
  } catch (error) {
    part.file.resume();
    return streamError && streamError === error ? throwMalformedForm(error) : Promise.reject(error);
  }
}

function readPartMetadata({ filename = '', mimetype }: MultipartFile): FileMetadata {
  if (/[\p{Cc}]/u.test(filename))
    throw invalid('/body/file', 'has a name with control characters', 'Rename the file.');
  const error = findMediaTypeError(mimetype);
  if (error !== undefined)
    throw invalid(
      '/body/file',
      `has an invalid content type: it ${error}`,
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
 * Browsers, fetch and curl encode a quote in a form's file name as `%22` (WHATWG, "multipart/form-data encoding"). They
 * also encode line ends, which are not decoded, because file names do not contain them.
 */
function unescapeFormFileName(filename: string): string {
  return filename.replaceAll('%22', '"');
}

/** @throws AppError the given one, if the body did not arrive. */
function throwMalformedForm(error: unknown): never {
  if (error instanceof AppError) throw error;
  throw invalid(
    '/body',
    'is not a complete multipart/form-data body: it is malformed or truncated',
    'Send the complete form again with one file.',
  );
}

function singleFileRequired(message: string): AppError {
  return invalid(
    '/body',
    message,
    'Send a form with exactly one file and no other field; upload several files separately.',
  );
}

function tooLarge(): AppError {
  return fileTooLarge(MAX_FILE_BYTES, 'Send a smaller file, or send a link to it.');
}

function notMultipart(): AppError {
  return new AppError('unsupported_media_type', {
    detail: 'An upload must be a form with one file.',
    fix: 'Send Content-Type: multipart/form-data with one file.',
  });
}
