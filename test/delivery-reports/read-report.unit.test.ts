import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type MailReport, readMailReport } from '../../domain/delivery-reports/read-report.ts';
import { cpuTimeMs } from '../support/cpu-time.ts';

interface Expected {
  kind: MailReport['kind'];
  recipients?: (string | null)[];
  /** Of all recipients. */
  permanence?: 'Permanent' | 'Transient';
  /** Of the first recipient. */
  status?: string;
}

const FOLDER = new URL('../fixtures/bounces/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, FOLDER));
const EXPECTED = JSON.parse(read('expected.json').toString('utf8')) as Record<string, Expected>;

function addressesOf({ recipients, feedback }: MailReport): (string | null)[] {
  return feedback ? feedback.originalRecipients : recipients.map(({ address }) => address);
}

describe('readMailReport', () => {
  test.each(Object.entries(EXPECTED))('reads %s', (name, expected) => {
    const report = readMailReport(read(`${name}.eml`));
    expect(report.kind).toBe(expected.kind);
    if (expected.recipients) expect(addressesOf(report)).toEqual(expected.recipients);
    if (expected.status) expect(report.recipients[0]?.status).toBe(expected.status);
    if (expected.permanence)
      for (const { permanence } of report.recipients) expect(permanence).toBe(expected.permanence);
  });

  test.each(Object.keys(EXPECTED))('reads %s with CRLF the same way', (name) => {
    const raw = read(`${name}.eml`).toString('latin1');
    const crlf = Buffer.from(raw.replace(/\r?\n/g, '\r\n'), 'latin1');
    expect(addressesOf(readMailReport(crlf))).toEqual(
      addressesOf(readMailReport(Buffer.from(raw, 'latin1'))),
    );
  });
});

describe('any input', () => {
  const samples = Object.keys(EXPECTED).map((name) => read(`${name}.eml`));

  test('never throws for random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
        expect(readMailReport(Buffer.from(bytes)).kind).toBe('mail');
      }),
    );
  });

  test('never throws for truncated reports', () => {
    for (const name of ['dsn-base64', 'exim-rcpt', 'jp-raw-iso2022', 'arf-abuse', 'exchange2007-html']) {
      const report = read(`${name}.eml`);
      for (let length = 0; length < report.length; length += 1) readMailReport(report.subarray(0, length));
    }
    fc.assert(
      fc.property(fc.constantFrom(...samples), fc.double({ min: 0, max: 1, noNaN: true }), (sample, part) => {
        readMailReport(sample.subarray(0, Math.floor(sample.length * part)));
      }),
      { numRuns: 500 },
    );
  });

  test('never throws for damaged reports', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...samples),
        fc.nat(5_000),
        fc.nat(60),
        fc.string(),
        (sample, at, length, put) => {
          const text = sample.toString('latin1');
          readMailReport(Buffer.from(text.slice(0, at) + put + text.slice(at + length), 'latin1'));
        },
      ),
      { numRuns: 500 },
    );
  });

  const DAEMON = 'From: MAILER-DAEMON@x.example\nSubject: failure notice\n\n';
  test.each([
    ['thousands of addresses', `${DAEMON}${'a@b.example '.repeat(300_000)}`],
    ['lines of addresses', `${DAEMON}${'<a@b.example>: 550 no\n'.repeat(200_000)}`],
    ['a very long local part', `${DAEMON}${'a.'.repeat(2_000_000)}@b.example`],
    ['at signs', `${DAEMON}${'@'.repeat(4_000_000)}`],
    ['brackets', `${DAEMON}${'<'.repeat(4_000_000)}`],
    ['a very long text', `${DAEMON}${'user unknown recipient address '.repeat(100_000)}`],
    ['one long word', `${DAEMON}user ${'x'.repeat(4_000_000)}`],
    ['spaces', `${DAEMON}user${' '.repeat(4_000_000)}unknown`],
    ['header lines', `${DAEMON}${'Received: x\n'.repeat(300_000)}`],
    ['many announcements of a returned message', `${DAEMON}${'original message\nFrom: a\n'.repeat(200_000)}`],
    ['encoded words', `Subject: ${'=?utf-8?q?a?= '.repeat(100_000)}\n\nx`],
    [
      'reports',
      `Content-Type: message/delivery-status\n\n${'Final-Recipient: rfc822;a@b\nAction: failed\n'.repeat(80_000)}`,
    ],
  ])('is read quickly: %s', (_what, raw) => {
    const bytes = Buffer.from(raw);
    const cost = cpuTimeMs(() => {
      readMailReport(bytes);
    });
    // Superlinear work would take minutes; garbage collection in a busy process may take seconds.
    expect(cost).toBeLessThan(20_000);
  });
});
