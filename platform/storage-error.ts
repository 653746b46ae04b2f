import { S3ServiceException } from '@aws-sdk/client-s3';

export type StorageFailure = 'missing' | 'tooLarge' | 'mismatched' | 'unavailable';

/** Names the operation and the key, never an address with a signature or a credential. */
export class StorageError extends Error {
  readonly failure: StorageFailure;

  constructor(failure: StorageFailure, message: string) {
    super(message);
    this.name = 'StorageError';
    this.failure = failure;
  }
}

export function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

/** What S3 answers to a list of parts that are not what was put. */
const MISMATCHED = new Set(['InvalidPart', 'InvalidPartOrder', 'EntityTooSmall']);

function failureOf(error: unknown): StorageFailure {
  if (error instanceof S3ServiceException && MISMATCHED.has(error.name)) return 'mismatched';
  return statusOf(error) === 404 ? 'missing' : 'unavailable';
}

/** The SDK's errors carry the whole exchange, signatures included; what leaves here is a name, a status, a message. */
export async function attempt<T>(operation: string, key: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StorageError) throw error;
    const status = statusOf(error);
    const said = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown error';
    throw new StorageError(
      failureOf(error),
      `Storage could not ${operation} ${key}${status === undefined ? '' : ` (${status})`}: ${said}`,
    );
  }
}
