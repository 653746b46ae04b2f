import { S3ServiceException } from '@aws-sdk/client-s3';

export type StorageFailure = 'missing' | 'tooLarge' | 'mismatched' | 'unavailable';

/** The message contains the operation and the key, never a signed URL or a credential. */
export class StorageError extends Error {
  readonly failure: StorageFailure;

  constructor(failure: StorageFailure, message: string) {
    super(message);
    this.name = 'StorageError';
    this.failure = failure;
  }
}

export function httpStatusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

/** S3 errors for a list of parts that does not match the uploaded parts. */
const MISMATCH_ERRORS = new Set(['InvalidPart', 'InvalidPartOrder', 'EntityTooSmall']);

function toFailure(error: unknown): StorageFailure {
  if (error instanceof S3ServiceException && MISMATCH_ERRORS.has(error.name)) return 'mismatched';
  // Without the bucket every object seems to be missing.
  if (error instanceof S3ServiceException && error.name === 'NoSuchBucket') return 'unavailable';
  return httpStatusOf(error) === 404 ? 'missing' : 'unavailable';
}

/** Replaces the SDK's errors, which contain the whole exchange with signatures, with name, status and message. */
export async function withStorageErrors<T>(
  operation: string,
  key: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StorageError) throw error;
    const status = httpStatusOf(error);
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown error';
    throw new StorageError(
      toFailure(error),
      `Storage could not ${operation} ${key}${status === undefined ? '' : ` (${status})`}: ${reason}`,
    );
  }
}
