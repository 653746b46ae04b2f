import { invalid } from '../platform/errors.ts';

/** A day, or a time of RFC 3339, with or without seconds and zone. */
const ISO_TIME = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/i;

/**
 * Parses a time.
 *
 * @param path JSON Pointer to the field, for the error.
 * @throws AppError `validation_error` for an invalid time or one before 1970.
 */
export function parseTime(path: string, text: string): Date {
  // Date also reads what only its own toString writes, and years as numbers.
  const time = ISO_TIME.test(text) ? new Date(text) : new Date(Number.NaN);
  const year = time.getUTCFullYear();
  if (year >= 1970 && year <= 9999) return time;
  throw invalid(
    path,
    'must be a valid time, not before 1970',
    'Use a time such as 2026-11-21T09:30:00.000Z.',
  );
}

/**
 * Parses a day, or a time within it.
 *
 * @throws AppError `validation_error` for a day that does not exist.
 */
export function parseDay(path: string, text: string): Date {
  const time = parseTime(path, text);
  const day = text.slice(0, 10);
  // Date accepts days that do not exist: February 30 becomes March 2.
  if (new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)) return time;
  throw invalid(path, 'is not a valid day', 'Use a day such as 2026-11-21.');
}

const DAY_MS = 86_400_000;

/**
 * Parses a time, or a day as its first or last moment (UTC).
 *
 * @throws AppError `validation_error` like {@link parseDay}.
 */
export function parseTimeOrDay(path: string, text: string, end: 'start' | 'end'): Date {
  const time = parseDay(path, text);
  const isDay = !/t/i.test(text);
  return isDay && end === 'end' ? new Date(time.getTime() + DAY_MS) : time;
}
