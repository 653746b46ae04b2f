import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { AppError } from '../platform/errors.ts';
import { redactAddresses } from '../platform/mail-transport/mail-transport.ts';

/**
 * Runs the body of an activity and converts what it throws into a failure that Temporal understands. An `AppError` below
 * status 500 is not retried, since it would be refused again; everything else (a database or storage that is down) is.
 * Operators read histories, so messages carry no addresses.
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
