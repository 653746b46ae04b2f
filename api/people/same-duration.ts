import { setTimeout as pause } from 'node:timers/promises';

/** Longer than the work of sign-up and password reset takes on a busy machine. */
const DURATION_MS = 700;

/**
 * Makes an answer take equally long whether or not an account exists, so that its time does not reveal accounts. The work
 * is done when it resolves: what fails is reported.
 */
export async function withSameDuration<T>(work: Promise<T>): Promise<T> {
  const [result] = await Promise.allSettled([work, pause(DURATION_MS)]);
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}
