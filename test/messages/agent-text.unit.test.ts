import { describe, expect, test } from '@jest/globals';
import { createAgentMessageService } from '../../domain/messages/agent-message.service.ts';
import { cutText, readShortText, shortenUrls } from '../../domain/messages/agent-text.ts';
import { describeFailure } from '../../domain/messages/delivery-failure.ts';
import type { ListedMessage } from '../../domain/messages/message-details.ts';
import { ConversionStoppedError } from '../../domain/mime/converter/pool.ts';
import type { Database } from '../../platform/database/database.ts';

const message = (fields: Partial<ListedMessage>) => fields as ListedMessage;

describe('a cut text', () => {
  test.each([
    ['abc', 0, 3, 'abc', null],
    ['abc', 0, 2, 'ab', 2],
    ['abc', 2, 2, 'c', null],
    ['abc', 9, 2, '', null],
    ['a👍b', 0, 2, 'a', 1],
    ['a👍b', 1, 2, '👍', 3],
    ['', 0, 1, '', null],
  ])('%j from %d, at most %d: %j', (text, offset, maxCharacters, expected, nextOffset) => {
    expect(cutText(text, { offset, maxCharacters })).toEqual({
      text: expected,
      isTruncated: nextOffset !== null,
      nextOffset,
    });
  });
});

test.each([
  ['a short URL', 'See <https://a.example/x>.', 'See <https://a.example/x>.'],
  ['a long URL', `See <https://a.example/${'x'.repeat(100)}> now`, 'See <https://a.example/…> now'],
  ['a long query', `https://a.example?${'x'.repeat(100)} now`, 'https://a.example/… now'],
  ['a URL of 80 characters', `https://a.example/${'x'.repeat(62)}`, `https://a.example/${'x'.repeat(62)}`],
])('URLs: %s', (_what, text, expected) => {
  expect(shortenUrls(text)).toBe(expected);
});

describe('the text of a list', () => {
  test('is the new text of both directions', () => {
    const inbound = message({ direction: 'inbound', extractedText: 'New', textBody: 'New\n> Old' });
    const outbound = message({
      direction: 'outbound',
      textBody: 'Sent\n\nOn Mon, 23 Nov 2026 at 10:00, Ada <a@b.example> wrote:\n> Old',
    });
    const html = message({ direction: 'outbound', textBody: null, htmlBody: '<p>Hi</p>', preview: 'Hi' });
    expect([inbound, outbound, html].map((given) => readShortText(given, 500).text)).toEqual([
      'New',
      'Sent',
      'Hi',
    ]);
  });
});

describe('a message that stops the conversion', () => {
  const read = (
    given: Partial<ListedMessage>,
    error: Error = new ConversionStoppedError('it took too long'),
  ) =>
    createAgentMessageService({
      database: undefined as unknown as Database,
      converter: {
        forOrganization: () => ({
          sanitize: () => Promise.reject(error),
          toText: () => Promise.reject(error),
          toNewText: () => Promise.reject(error),
        }),
      },
    }).readText(message(given), { format: 'markdown', offset: 0, maxCharacters: 100 });

  test('has the text that was read on arrival', async () => {
    const received = { direction: 'inbound', htmlBody: '<h1>Hello</h1>', extractedText: 'Hello' } as const;
    expect(await read(received)).toEqual({ text: 'Hello', isTruncated: false, nextOffset: null });
  });

  test('has its start if it was sent, and says that the rest is missing', async () => {
    const sent = { direction: 'outbound', htmlBody: '<h1>Hello</h1>', textBody: 'Hello' } as const;
    expect(await read(sent)).toEqual({ text: 'Hello', isTruncated: true, nextOffset: null });
  });

  test('hides no other error', async () => {
    await expect(read({ direction: 'inbound', htmlBody: '<p>' }, new Error('other'))).rejects.toThrow(
      'other',
    );
  });
});

describe('a failure is described', () => {
  const recipient = (status: string, statusCode: string | null = null) => ({
    ...{ email: 'a@b.example', statusCode, diagnosticCode: 'why' },
    status: status as 'bounced',
  });
  test.each([
    ['nothing failed', 'sent', [recipient('sent')], null],
    [
      'another recipient failed',
      'bounced',
      [recipient('delivered'), recipient('bounced', '5.1.1')],
      'Permanent',
    ],
    ['a full mailbox', 'bounced', [recipient('bounced', '5.2.2')], 'Transient'],
    ['the gate refused', 'rejected', [recipient('rejected')], 'Rejected'],
    ['it can never be sent', 'failed', [recipient('pending')], 'Rejected'],
    ['a recipient complained', 'complained', [recipient('complained')], 'Complaint'],
  ] as const)('%s', (_what, status, recipients, type) => {
    expect(describeFailure({ status, statusDetail: 'detail' }, recipients)?.type ?? null).toBe(type);
  });
});
