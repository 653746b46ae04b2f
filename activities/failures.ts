import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory, CancelledFailure } from '@temporalio/common';
import { UnsendableMessageError } from '../domain/mime/build-mime.ts';
import { NoShareError } from '../platform/concurrency/fair-share.ts';
import { toDatabaseError } from '../platform/database/database-errors.ts';
import { AppError } from '../platform/errors.ts';
import { redactAddresses } from '../platform/mail-transport/mail-transport.ts';
import { StorageError } from '../platform/storage-error.ts';

/**
 * A failure that has no temporary cause is retried this often: it may be a defect that a retry does not solve. With the
 * retry policies of this service that takes about ten minutes.
 */
export const MAX_DEFECT_ATTEMPTS = 15;

/**
 * Runs the body of an activity and converts errors to Temporal's `ApplicationFailure`:
 *
 * - retried until the retry policy ends it: a database, storage or network that is unavailable;
 * - not retried: an `AppError` with a status below 500 and a message that cannot be built, because they would be thrown
 *   again;
 * - retried until a share is left: {@link NoShareError};
 * - retried up to {@link MAX_DEFECT_ATTEMPTS} times: everything else.
 *
 * Messages contain no addresses, because operators can read histories.
 */
export async function withApplicationFailures<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // A cancellation must reach Temporal unchanged.
    if (error instanceof ApplicationFailure || error instanceof CancelledFailure) throw error;
    if (error instanceof AppError) {
      throw ApplicationFailure.create({
        message: redactAddresses(error.detail),
        type: error.code,
        nonRetryable: error.status < 500,
      });
    }
    if (error instanceof NoShareError)
      throw ApplicationFailure.create({
        type: 'NoShare',
        message: error.message,
        nextRetryDelay: error.retryAfterMs,
        // Expected: not an error.
        category: ApplicationFailureCategory.BENIGN,
      });
    const message = error instanceof Error ? error.message : String(error);
    throw ApplicationFailure.create({
      message: redactAddresses(message).slice(0, 500),
      type: error instanceof Error ? error.name : 'Error',
      nonRetryable: error instanceof UnsendableMessageError || isLastAttempt(error),
    });
  }
}

function isLastAttempt(error: unknown): boolean {
  return !isTemporary(error) && Context.current().info.attempt >= MAX_DEFECT_ATTEMPTS;
}

/** Error codes of sockets and name resolution. */
const NETWORK_CODES = /^(?:E(?:CONN|HOST|NET|PIPE|TIMEDOUT|AI_)[A-Z]*|ENOTFOUND|UND_ERR_[A-Z_]+)$/;
/** gRPC: DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE (Temporal). */
const GRPC_CODES = new Set([4, 8, 14]);

/** Whether the cause lies outside this service and may pass. */
function isTemporary(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const databaseError = toDatabaseError(error);
  if (databaseError?.code === 'unavailable' || databaseError?.code === 'conflict') return true;
  if (error instanceof StorageError) return error.failure === 'unavailable';
  const { code, cause } = error as Error & { code?: unknown };
  if (typeof code === 'number' && GRPC_CODES.has(code)) return true;
  if (typeof code === 'string' && NETWORK_CODES.test(code)) return true;
  return error.name === 'TimeoutError' || error.name === 'AbortError' || isTemporary(cause);
}
