import { invalid } from '../platform/errors.ts';

/**
 * A time as the service keeps it.
 *
 * @param path where in the request it stands, for the error.
 * @throws AppError `validation_error` for a time the calendar does not have.
 */
export function parseTime(path: string, given: string): Date {
  const time = new Date(given);
  const year = time.getUTCFullYear();
  if (year >= 1970 && year <= 9999) return time;
  throw invalid(path, 'is not a time from 1970 on', 'Give a time as 2026-11-21T09:30:00.000Z.');
}

/**
 * A day, or a time within it.
 *
 * @throws AppError `validation_error` for a day the calendar does not have.
 */
export function parseDay(path: string, given: string): Date {
  const time = parseTime(path, given);
  const day = given.slice(0, 10);
  // Days too many are carried over: the 30th of February would be the 2nd of March.
  if (new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)) return time;
  throw invalid(path, 'is not a day of the calendar', 'Give a day that there is, as 2026-11-21.');
}
