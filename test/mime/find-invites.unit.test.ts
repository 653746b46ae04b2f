import { describe, expect, test } from '@jest/globals';
import { findInvites as findInTime, isCalendar } from '../../domain/mime/invites/find-invites.ts';
import { expectComputedWithin } from '../support/expect-within.ts';

/** A machine that is too slow for the limit of the service finds nothing. */
const findInvites = (calendar: string) => findInTime(calendar, 60_000);

const calendar = (times: readonly string[], { method = 'REQUEST', zones = '' } = {}) =>
  [
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    ...(method === '' ? [] : [`METHOD:${method}`]),
    ...(zones === '' ? [] : [zones]),
    'BEGIN:VEVENT',
    'UID:4711@example.com',
    'SUMMARY:Lunch\\, with',
    '  Ada',
    ...times,
    'ORGANIZER;CN=Ada:mailto:ada@example.com',
    'ATTENDEE;RSVP=TRUE:mailto:bob@example.com',
    'ATTENDEE:MAILTO:eve@example.com',
    'LOCATION:Room 4',
    'END:VEVENT',
    'END:VCALENDAR',
    '',
  ].join('\r\n');

const BERLIN = [
  'BEGIN:VTIMEZONE',
  'TZID:W. Europe Standard Time',
  'BEGIN:STANDARD',
  'DTSTART:16010101T030000',
  'TZOFFSETFROM:+0200',
  'TZOFFSETTO:+0100',
  'RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10',
  'END:STANDARD',
  'BEGIN:DAYLIGHT',
  'DTSTART:16010101T020000',
  'TZOFFSETFROM:+0100',
  'TZOFFSETTO:+0200',
  'RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3',
  'END:DAYLIGHT',
  'END:VTIMEZONE',
].join('\r\n');

test('reads an invitation', () => {
  expect(findInvites(calendar(['DTSTART:20261124T140000Z', 'DTEND:20261124T150000Z']))).toEqual([
    {
      method: 'REQUEST',
      uid: '4711@example.com',
      summary: 'Lunch, with Ada',
      start: '2026-11-24T14:00:00.000Z',
      end: '2026-11-24T15:00:00.000Z',
      organizer: 'ada@example.com',
      attendees: ['bob@example.com', 'eve@example.com'],
      location: 'Room 4',
    },
  ]);
});

describe('times:', () => {
  test.each([
    [
      'of a zone with its rules',
      ['DTSTART;TZID=W. Europe Standard Time:20260724T140000'],
      '2026-07-24T12:00:00.000Z',
      null,
    ],
    [
      'of a zone of the database',
      ['DTSTART;TZID=America/New_York:20261124T090000'],
      '2026-11-24T14:00:00.000Z',
      null,
    ],
    ['of an unknown zone', ['DTSTART;TZID=Nowhere:20261124T090000'], '2026-11-24T09:00:00', null],
    ['without a zone', ['DTSTART:20261124T090000'], '2026-11-24T09:00:00', null],
    [
      'of whole days',
      ['DTSTART;VALUE=DATE:20261124', 'DTEND;VALUE=DATE:20261126'],
      '2026-11-24',
      '2026-11-26',
    ],
    [
      'with a duration',
      ['DTSTART:20261124T140000Z', 'DURATION:PT1H30M'],
      '2026-11-24T14:00:00.000Z',
      '2026-11-24T15:30:00.000Z',
    ],
    ['none', [], null, null],
  ])('%s', (_what, times, start, end) => {
    expect(findInvites(calendar(times, { zones: BERLIN }))).toMatchObject([{ start, end }]);
  });
});

test('a canceled event, and a calendar without a method', () => {
  expect(findInvites(calendar([], { method: 'cancel' }))).toMatchObject([{ method: 'CANCEL' }]);
  expect(findInvites(calendar([], { method: '' }))).toMatchObject([{ method: null }]);
});

describe('hostile calendars are bounded:', () => {
  test.each([
    ['nothing', ''],
    ['no calendar', 'Hello'],
    ['no end', 'BEGIN:VCALENDAR\r\nBEGIN:VEVENT'],
    ['deep nesting', 'BEGIN:VCALENDAR\r\n'.repeat(20_000)],
    ['a broken time', calendar(['DTSTART:99999999T999999Z']).replace('DTSTART', 'DTSTART;VALUE=DURATION')],
    ['a long line', calendar([`X-A:${'a'.repeat(5_000_000)}`])],
  ])('%s', (_what, text) => {
    expect(expectComputedWithin(3_000, () => findInTime(text)).length).toBeLessThan(2);
  });

  test('many events and attendees', () => {
    const event = `BEGIN:VEVENT\r\n${'ATTENDEE:mailto:a@b.example\r\n'.repeat(200)}END:VEVENT\r\n`;
    const found = findInTime(`BEGIN:VCALENDAR\r\n${event.repeat(30)}END:VCALENDAR\r\n`);
    expect(found).toHaveLength(10);
    expect(found[0]?.attendees).toHaveLength(100);
  });

  test('time zones with endless rules', () => {
    const zones = BERLIN.replaceAll('FREQ=YEARLY;BYDAY=-1SU', 'FREQ=SECONDLY');
    const endless = calendar(['DTSTART;TZID=W. Europe Standard Time:20260724T140000'], { zones });
    expectComputedWithin(3_000, () => findInTime(endless));
  });
});

test.each([
  ['text/calendar', 'a.txt', true],
  ['application/ics', 'a', true],
  ['application/octet-stream', 'Invite.ICS', true],
  ['text/plain', 'a.txt', false],
])('a file of type %s named %s is a calendar: %s', (contentType, filename, expected) => {
  expect(isCalendar({ contentType, filename })).toBe(expected);
});
