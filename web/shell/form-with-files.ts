import type { MultipartFile, MultipartValue } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import { type StoreFile, storePart } from '../../api/attachments/upload.ts';
import { fileTooLarge, MAX_FILE_BYTES, MIB_BYTES } from '../../domain/attachments/attachment-limits.ts';
import type { StoredFile } from '../../domain/attachments/stored-file.ts';
import { AppError, invalid } from '../../platform/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Of a form with files: stores each while it arrives. Without it, a form has no files. */
    storeFormFile?: (request: FastifyRequest, ...file: Parameters<StoreFile>) => Promise<StoredFile>;
  }
  interface FastifyRequest {
    /** The files of the form, whose bytes are in storage; unset without any. */
    formFiles?: StoredFile[];
    /** Why a file of the form was refused. The fields of the form arrived, so its page can show them. */
    formFailure?: AppError;
  }
}

export const MAX_FORM_FILES = 20;
const MAX_FIELDS_BYTES = 1024 * 1024;

/** For the parser of forms. One file more than allowed, and one byte more, show that there are too many. */
export const FORM_LIMITS = {
  fileSize: MAX_FILE_BYTES + 1,
  files: MAX_FORM_FILES + 1,
  fields: 100,
  parts: MAX_FORM_FILES + 101,
  fieldSize: MAX_FIELDS_BYTES + 1,
  headerPairs: 20,
};

/**
 * Reads the fields of a multipart form into memory, and streams its files to storage. The token of the form comes before its
 * files: nothing is stored for a page of another site.
 *
 * @throws AppError `permission_denied` for a wrong token, `payload_too_large`, `validation_error` for a form that is not complete.
 */
export async function readFormWithFiles(
  request: FastifyRequest,
  verify: (token: unknown) => void,
): Promise<Record<string, string | string[]>> {
  const store = request.routeOptions.config.storeFormFile;
  const form = new FormFields();
  try {
    for await (const part of request.parts()) {
      if (request.bodyClaim?.failure) throw request.bodyClaim.failure;
      if (part.type === 'field') {
        form.add(part);
        if (part.fieldname === 'csrf') verify(part.value);
        continue;
      }
      if (!form.has('csrf')) verify(undefined);
      await takeFile(request, part, store);
    }
    if (!form.has('csrf')) verify(undefined);
    return form.withoutToken();
  } catch (error) {
    // Read and discard the rest: a browser whose connection is closed while it is sending never shows the answer.
    request.raw.resume();
    throw error instanceof AppError ? error : notComplete();
  }
}

/** A refused file does not end the form: the page shows what was entered, and what is wrong. */
async function takeFile(
  request: FastifyRequest,
  part: MultipartFile,
  store: NonNullable<FastifyRequest['routeOptions']['config']['storeFormFile']> | undefined,
): Promise<void> {
  // A field in which no file was chosen.
  const isEmpty = part.filename === '' || part.filename === undefined;
  if (isEmpty || request.formFailure || !store) {
    part.file.resume();
    return;
  }
  try {
    if ((request.formFiles?.length ?? 0) >= MAX_FORM_FILES) throw tooManyFiles();
    const stored = await storePart(part, (...file) => store(request, ...file));
    const sizeBytes = [...(request.formFiles ?? []), stored].reduce((sum, each) => sum + each.sizeBytes, 0);
    // Bytes that no file refers to are deleted within a day.
    if (sizeBytes > MAX_FILE_BYTES) throw tooMuchTogether();
    request.formFiles = [...(request.formFiles ?? []), stored];
  } catch (error) {
    part.file.resume();
    if (!(error instanceof AppError) || error.status >= 500) throw error;
    request.formFailure = atFiles(error);
  }
}

/** Fields by name. One that occurs several times is a list. */
class FormFields {
  readonly #values = new Map<string, string[]>();
  #bytes = 0;

  add({ fieldname, value, valueTruncated }: MultipartValue): void {
    const text = String(value);
    this.#bytes += Buffer.byteLength(text);
    if (valueTruncated || this.#bytes > MAX_FIELDS_BYTES) throw tooLong();
    this.#values.set(fieldname, [...(this.#values.get(fieldname) ?? []), text]);
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  withoutToken(): Record<string, string | string[]> {
    return Object.fromEntries(
      [...this.#values]
        .filter(([name]) => name !== 'csrf')
        .map(([name, values]) => [name, values.length === 1 ? (values[0] ?? '') : values]),
    );
  }
}

/** What is wrong with a file stands at the field of the files. */
export function atFiles(error: AppError): AppError {
  const { code, detail, fix, extensions } = error;
  return new AppError(code, {
    detail,
    fix,
    extensions,
    errors: [{ path: '/body/files', message: lowerFirst(detail).replace(/\.$/, '') }],
  });
}

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

const tooManyFiles = () =>
  invalid('/body/files', `has more than ${MAX_FORM_FILES} files`, 'Attach fewer files at once.');

const tooMuchTogether = () =>
  new AppError('payload_too_large', {
    detail: `The files have more than ${MAX_FILE_BYTES / MIB_BYTES} MiB together.`,
    fix: 'Attach fewer or smaller files, or send links to them.',
  });

const tooLong = () => fileTooLarge(MAX_FIELDS_BYTES, 'Shorten the text, or attach it as a file.');

const notComplete = () => invalid('/body', 'did not arrive whole', 'Go back and submit the form again.');
