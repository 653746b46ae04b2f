import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { AppError } from '../platform/errors.ts';
import { redactAddresses } from '../platform/mail-transport/mail-transport.ts';

/**
 * Runs the body of an activity and converts errors to Temporal's `ApplicationFailure`. An `AppError` with a status below
 * 500 is not retried, because it would be thrown again; all other errors are retried (such as an unavailable database).
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
    const message = error instanceof Error ? error.message : String(error);
    throw ApplicationFailure.create({
      message: redactAddresses(message).slice(0, 500),
      type: error instanceof Error ? error.name : 'Error',
    });
  }
}
