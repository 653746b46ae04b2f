import { AppError } from '../../platform/errors.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** Years have four digits, also where the hour's end is rounded up. */
const LATEST_MS = Date.UTC(9999, 11, 31, 23);

/** What was asked for; each may be left out. */
export interface AskedRange {
  start?: Date | undefined;
  end?: Date | undefined;
}

/** Whole hours (UTC): from the one `start` begins to the one before `end`. */
export interface MetricRange {
  start: Date;
  end: Date;
}

/** The beginning of the hour (UTC) a moment is in. */
export function hourOf(time: Date): Date {
  return new Date(Math.floor(time.getTime() / HOUR_MS) * HOUR_MS);
}

/**
 * Every hour that the asked range touches, whole. Without an end it goes up to `now`; without a start it is the 24 hours
 * up to and with the one the end is in.
 *
 * @throws AppError `unprocessable` where nothing lies between the two, or more than `maxDays`.
 */
export function readRange(asked: AskedRange, now: Date, maxDays: number): MetricRange {
  const last = asked.end ?? now;
  // The hour that an end lies in counts; one that begins at the end does not.
  const end = new Date(Math.min(Math.ceil(last.getTime() / HOUR_MS) * HOUR_MS, LATEST_MS));
  const start = asked.start ? hourOf(asked.start) : new Date(end.getTime() - DAY_MS);
  if (asked.start && (asked.start >= last || start >= end))
    throw refusal(
      `start (${asked.start.toISOString()}) is not before end (${last.toISOString()}${asked.end ? '' : ', now'}).`,
      'Give a start before the end.',
    );
  if (asked.start && last.getTime() - asked.start.getTime() > maxDays * DAY_MS)
    throw refusal(
      `From start to end are more than ${maxDays} days.`,
      `Ask for at most ${maxDays} days at a time.`,
    );
  return { start, end };
}

/** The beginnings of the range's hours, oldest first. */
export function hoursOf({ start, end }: MetricRange): Date[] {
  const count = Math.round((end.getTime() - start.getTime()) / HOUR_MS);
  return Array.from({ length: count }, (_, index) => new Date(start.getTime() + index * HOUR_MS));
}

function refusal(detail: string, fix: string): AppError {
  return new AppError('unprocessable', { detail, fix });
}
