import { invalid } from '../platform/errors.ts';

/**
 * A time as the service keeps it.
 *
 * @param path where in the request it stands, for the error.
 * @throws AppError `validation_error` for a time the calendar does not have.
 */
export function readTime(path: string, given: string): Date {
  const time = new Date(given);
  const year = time.getUTCFullYear();
  if (year >= 1970 && year <= 9999) return time;
  throw invalid(path, 'is not a time from 1970 on', 'Give a time as 2026-11-21T09:30:00.000Z.');
}
