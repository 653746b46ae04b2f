import ICAL from 'ical.js';
import { runWithTimeout } from '../../../platform/run-with-timeout.ts';
import { toUtc } from './local-time.ts';

/** An invitation to an event, or a change of one (RFC 5546). */
export interface FoundInvite {
  /** `REQUEST`, `CANCEL`, `REPLY`, …; null if the calendar names none. */
  method: string | null;
  uid: string | null;
  summary: string | null;
  /**
   * UTC (`2026-11-24T14:00:00.000Z`); a date for an event of whole days; without `Z` if the time zone is unknown. Null
   * if there is none.
   */
  start: string | null;
  end: string | null;
  /** Addresses without `mailto:`. */
  organizer: string | null;
  attendees: string[];
  location: string | null;
}

/** Larger calendars are exports, not invitations. */
export const MAX_CALENDAR_BYTES = 256 * 1024;
export const MAX_INVITES = 10;
export const MAX_ATTENDEES = 100;
const MAX_TEXT = 1_000;
/** Ordinary calendars take a millisecond. */
const TIMEOUT_MS = 1_000;

/** Whether a file is a calendar (RFC 5545), by its media type or its name. */
export function isCalendar({ contentType, filename }: { contentType: string; filename: string }): boolean {
  return /^(?:text\/(?:x-v)?calendar|application\/ics)$/i.test(contentType) || /\.ics$/i.test(filename);
}

/**
 * Reads the events of a calendar. Recurrences are not expanded.
 *
 * @returns an empty list if the calendar cannot be read in time.
 */
export function findInvites(calendar: string, timeoutMs: number = TIMEOUT_MS): FoundInvite[] {
  try {
    const text = calendar.slice(0, MAX_CALENDAR_BYTES);
    return runWithTimeout(timeoutMs, () => readCalendars(text, MAX_INVITES, readEvent)) ?? [];
  } catch {
    // The library throws errors of many kinds.
    return [];
  }
}

/** An event of a calendar file, with what a message's `invites` leave out. */
export interface CalendarEvent extends FoundInvite {
  description: string | null;
  /** `FREQ=WEEKLY;COUNT=4` (RFC 5545 section 3.3.10). */
  recurrence: string | null;
}

/** A longer calendar is read up to its last event within this length. */
export const MAX_CALENDAR_CHARACTERS = 2 * 1024 * 1024;
export const MAX_EVENTS = 2_000;
const MAX_DESCRIPTION = 10_000;

/**
 * Reads the events of a calendar file, for a process that may be killed: it has no time limit.
 *
 * @returns null if the calendar cannot be read.
 */
export function readEvents(calendar: string): CalendarEvent[] | null {
  try {
    return readCalendars(truncateCalendar(calendar), MAX_EVENTS, (event, method) => ({
      ...readEvent(event, method),
      description: textValueOf(event, 'description')?.trim().slice(0, MAX_DESCRIPTION) || null,
      recurrence: event.getFirstPropertyValue('rrule')?.toString().slice(0, MAX_TEXT) ?? null,
    }));
  } catch {
    return null;
  }
}

function truncateCalendar(calendar: string): string {
  if (calendar.length <= MAX_CALENDAR_CHARACTERS) return calendar;
  const start = calendar.slice(0, MAX_CALENDAR_CHARACTERS);
  const end = 'END:VEVENT';
  return `${start.slice(0, start.lastIndexOf(end) + end.length)}\r\nEND:VCALENDAR\r\n`;
}

function readCalendars<Event>(
  text: string,
  limit: number,
  read: (event: Component, method: string | null) => Event,
): Event[] {
  const parsed: unknown = ICAL.parse(text);
  const roots = Array.isArray(parsed) && Array.isArray(parsed[0]) ? parsed : [parsed];
  return roots
    .slice(0, limit)
    .flatMap((root) => {
      const component = new ICAL.Component(root as never);
      const method = textOf(component, 'method')?.toUpperCase() ?? null;
      return component
        .getAllSubcomponents('vevent')
        .slice(0, limit)
        .map((event) => read(event, method));
    })
    .slice(0, limit);
}

type Component = InstanceType<typeof ICAL.Component>;
type Time = InstanceType<typeof ICAL.Time>;

function readEvent(event: Component, method: string | null): FoundInvite {
  return {
    method,
    uid: textOf(event, 'uid'),
    summary: textOf(event, 'summary'),
    start: readTime(event, 'dtstart'),
    end: readEnd(event),
    organizer: toAddress(event.getFirstPropertyValue('organizer')),
    attendees: event
      .getAllProperties('attendee')
      .slice(0, MAX_ATTENDEES)
      .map((attendee) => toAddress(attendee.getFirstValue()))
      .filter((address) => address !== null),
    location: textOf(event, 'location'),
  };
}

function textOf(component: Component, name: string): string | null {
  return textValueOf(component, name)?.replace(/\s+/g, ' ').trim().slice(0, MAX_TEXT) || null;
}

function textValueOf(component: Component, name: string): string | null {
  const value = component.getFirstPropertyValue(name);
  return typeof value === 'string' ? value : null;
}

function toAddress(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  return (
    value
      .replace(/^mailto:/i, '')
      .trim()
      .slice(0, MAX_TEXT) || null
  );
}

function readTime(event: Component, name: string): string | null {
  const property = event.getFirstProperty(name);
  const value = property?.getFirstValue();
  if (!(value instanceof ICAL.Time)) return null;
  return toText(value, property?.getFirstParameter('tzid'));
}

/** RFC 5545 section 3.6.1: an event has an end, a duration, or neither. */
function readEnd(event: Component): string | null {
  const end = readTime(event, 'dtend');
  const start = event.getFirstPropertyValue('dtstart');
  const duration = event.getFirstPropertyValue('duration');
  if (end !== null || !(start instanceof ICAL.Time) || !(duration instanceof ICAL.Duration)) return end;
  const last = start.clone();
  last.addDuration(duration);
  return toText(last, event.getFirstProperty('dtstart')?.getFirstParameter('tzid'));
}

function toText(time: Time, zone: string | undefined): string {
  if (time.isDate) return time.toString();
  if (time.zone !== ICAL.Timezone.localTimezone) return time.toJSDate().toISOString();
  // Without the rules of the zone in the calendar.
  return (zone === undefined ? null : toUtc(time.toString(), zone)) ?? time.toString();
}
