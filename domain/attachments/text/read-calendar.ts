import { MAX_CALENDAR_CHARACTERS, readEvents } from '../../mime/invites/find-invites.ts';
import type { TextCollector } from './text-collector.ts';
import { UnreadableFileError } from './unreadable-file.ts';

/** Reads the events of a calendar (RFC 5545), a block of lines for each. Recurrences are not expanded. */
export function readCalendar(calendar: string, text: TextCollector): void {
  const events = readEvents(calendar);
  if (events === null) throw new UnreadableFileError('The calendar is damaged.');
  if (calendar.length > MAX_CALENDAR_CHARACTERS)
    text.leaveOut('The end of the calendar, which is very long.');
  for (const { description, recurrence, attendees, ...event } of events) {
    const fields = {
      Event: event.summary,
      Method: event.method,
      Start: event.start,
      End: event.end,
      Repeats: recurrence,
      Location: event.location,
      Organizer: event.organizer,
      Attendees: attendees.join(', ') || null,
      UID: event.uid,
      Description: description,
    };
    text.endLine();
    for (const [name, value] of Object.entries(fields)) if (value !== null) text.add(`${name}: ${value}\n`);
    text.add('\n');
  }
  if (events.length === 0) throw new UnreadableFileError('The calendar has no events.');
}
