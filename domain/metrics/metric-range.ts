import { AppError } from '../../platform/errors.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** Rounding up to a full hour must not leave four-digit years. */
const LATEST_MS = Date.UTC(9999, 11, 31, 23);

/** The range as requested; both ends are optional. */
export interface RequestedRange {
  start?: Date | undefined;
  end?: Date | undefined;
}

/** Whole hours (UTC): `start` is inclusive, `end` exclusive. */
export interface MetricRange {
  start: Date;
  end: Date;
}

/** The start of the hour (UTC) that contains a time. */
export function startOfHour(time: Date): Date {
  return new Date(Math.floor(time.getTime() / HOUR_MS) * HOUR_MS);
}

/**
 * Widens the requested range to whole hours. The default end is `now`; the default start is 24 hours before the end of
 * the last hour.
 *
 * @throws AppError `unprocessable` if the range is empty or longer than `maxDays`.
 */
export function resolveRange(requested: RequestedRange, now: Date, maxDays: number): MetricRange {
  const last = requested.end ?? now;
  // Includes the hour that contains the end, but not one that starts exactly at it.
  const end = new Date(Math.min(Math.ceil(last.getTime() / HOUR_MS) * HOUR_MS, LATEST_MS));
  const start = requested.start ? startOfHour(requested.start) : new Date(end.getTime() - DAY_MS);
  if (requested.start && (requested.start >= last || start >= end))
    throw rangeError(
      `start (${requested.start.toISOString()}) is not before end (${last.toISOString()}${requested.end ? '' : ', now'}).`,
      'Set start to a time before end.',
    );
  if (requested.start && last.getTime() - requested.start.getTime() > maxDays * DAY_MS)
    throw rangeError(
      `The range from start to end is longer than ${maxDays} days.`,
      `Request at most ${maxDays} days at a time.`,
    );
  return { start, end };
}

/** The start of every hour in the range, oldest first. */
export function listHours({ start, end }: MetricRange): Date[] {
  const count = Math.round((end.getTime() - start.getTime()) / HOUR_MS);
  return Array.from({ length: count }, (_, index) => new Date(start.getTime() + index * HOUR_MS));
}

function rangeError(detail: string, fix: string): AppError {
  return new AppError('unprocessable', { detail, fix });
}
