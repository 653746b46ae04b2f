import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { AppError } from '../platform/errors.ts';
import { redactAddresses } from '../platform/mail-transport/mail-transport.ts';

/**
 * Turns what a use-case throws into a failure Temporal understands, once, at the activity's edge. A domain refusal
 * stays refused however often it is asked; everything else (a database or storage that is down) is tried again.
 * Histories are read by operators, so addresses are taken out of messages.
 */
export async function asFailure<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // What was canceled shows as canceled.
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
