import { AppError } from '../../platform/errors.ts';

export const MIB_BYTES = 1024 * 1024;
/** A single file may use the whole limit of a message. */
export const MAX_FILE_BYTES = 25 * MIB_BYTES;
const MAX_TOTAL_FILE_BYTES = 25 * MIB_BYTES;
/** Limit for a file that is sent as base64 within JSON. */
export const MAX_INLINE_FILE_BYTES = 5 * MIB_BYTES;
export const MAX_ATTACHMENTS = 100;

/**
 * @param fix what the caller can do about it.
 * @throws AppError `payload_too_large`, `validation_error` for too many files.
 */
export function checkAttachmentLimits(
  files: readonly { sizeBytes: number }[],
  fix = 'Send fewer or smaller files, or send links to them.',
): void {
  if (files.length > MAX_ATTACHMENTS) {
    const message = `has ${files.length} attachments; at most ${MAX_ATTACHMENTS} are allowed`;
    throw new AppError('validation_error', {
      detail: `The message ${message}.`,
      fix,
      errors: [{ path: '/body/attachments', message }],
    });
  }
  const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
  if (sizeBytes > MAX_TOTAL_FILE_BYTES) {
    throw new AppError('payload_too_large', {
      detail: `The attachments have ${sizeBytes} bytes in total; at most ${MAX_TOTAL_FILE_BYTES} are allowed.`,
      fix,
      extensions: { max_bytes: MAX_TOTAL_FILE_BYTES },
    });
  }
}

export function fileTooLarge(maxBytes: number, fix: string): AppError {
  return new AppError('payload_too_large', {
    detail: `The file is larger than ${maxBytes / MIB_BYTES} MiB.`,
    fix,
    extensions: { max_bytes: maxBytes },
  });
}
