import { describe, expect, test } from '@jest/globals';
import { type Envelope, truncateToFit } from '../../domain/events/envelope.ts';
import { type EventDataByType, MAX_EVENT_BYTES } from '../../domain/events/event-types.ts';

const received = (
  extracted_text: string,
  more: Partial<EventDataByType['message.received']> = {},
): Envelope => ({
  id: 'evt_1',
  type: 'message.received',
  timestamp: '2026-01-01T00:00:00.000Z',
  org_id: 'org_1',
  env_id: 'env_1',
  data: {
    message_id: 'msg_1',
    thread_id: 'thr_1',
    inbox_id: 'inb_1',
    from_address: 'a@example.com',
    to_addresses: ['b@example.com'],
    subject: 'Größe',
    extracted_text,
    has_attachments: false,
    received_at: '2026-01-01T00:00:00.000Z',
    ...more,
  },
});
const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
/** Bytes of JSON available for the text before it is truncated. */
const ROOM = MAX_EVENT_BYTES - bytes(received(''));
const dataOf = (whole: Envelope) => whole.data as EventDataByType['message.received'];

describe('a body', () => {
  test('of exactly 256 KiB is not changed', () => {
    const whole = received('a'.repeat(ROOM));
    expect(bytes(whole)).toBe(MAX_EVENT_BYTES);
    expect(truncateToFit(whole)).toBe(whole);
  });

  test.each([
    ['one byte a character', 'a', 1],
    ['two bytes', 'ä', 2],
    ['three bytes', '字', 3],
    ['a surrogate pair', '😀', 4],
    ['what JSON escapes', '"', 2],
    ['control characters', '\u0001', 6],
  ])('over 256 KiB is cut between characters of %s', (_name, character, size) => {
    const text = character.repeat(Math.ceil((ROOM + 1) / size));
    const cut = truncateToFit(received(text));
    const { extracted_text, truncated } = dataOf(cut);
    expect(truncated).toBe(true);
    expect(text.startsWith(extracted_text)).toBe(true);
    expect(extracted_text.length % character.length).toBe(0);
    // As long as possible: one more character would not fit.
    expect(bytes(cut)).toBeLessThanOrEqual(MAX_EVENT_BYTES);
    expect(bytes(cut)).toBeGreaterThan(MAX_EVENT_BYTES - size);
  });

  test('with mixed text is cut at a character boundary', () => {
    for (let shift = 0; shift < 12; shift += 1) {
      const text = 'x'.repeat(shift) + 'a😀ä字'.repeat(40_000);
      const cut = truncateToFit(received(text));
      const { extracted_text } = dataOf(cut);
      expect(extracted_text.isWellFormed()).toBe(true);
      expect(text.startsWith(extracted_text)).toBe(true);
      expect(bytes(cut)).toBeLessThanOrEqual(MAX_EVENT_BYTES);
      expect(bytes(cut)).toBeGreaterThan(MAX_EVENT_BYTES - 4);
    }
  });

  test('that is too large without its text loses all of the text and nothing else', () => {
    const to_addresses = Array.from({ length: 10_000 }, (_, index) => `somebody-${index}@long.example.com`);
    const cut = dataOf(truncateToFit(received('text', { to_addresses })));
    expect(cut).toMatchObject({ extracted_text: '', truncated: true });
    expect(cut.to_addresses).toEqual(to_addresses);
  });

  test('without text is never changed', () => {
    const large: Envelope = { ...received(''), type: 'message.sent', data: { subject: 'a'.repeat(300_000) } };
    expect(truncateToFit(large)).toBe(large);
  });
});
