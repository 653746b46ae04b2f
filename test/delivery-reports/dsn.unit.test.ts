import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { deliveryReport } from '../../dev/stack/delivery-reports.ts';
import { classifyBounce, parseDeliveryReport } from '../../domain/delivery-reports/dsn.ts';
import { expectWithin } from '../support/expect-within.ts';

const read = (name: string) => readFileSync(new URL(`reports/${name}.eml`, import.meta.url));
const NONE = { originalEnvelopeId: null, arrivalDate: null };

describe('a delivery report', () => {
  test.each([
    [
      'postfix-failed',
      {
        originalEnvelopeId: 'msg_01h455vb4pex5vsknk084sn02q.0',
        arrivalDate: new Date('2026-03-02T10:11:11Z'),
        recipients: [
          {
            action: 'failed',
            status: '5.1.1',
            diagnosticCode: 'smtp; 550 5.1.1 <gone@example.com>: Recipient address rejected: User unknown',
            finalRecipient: 'gone@example.com',
            originalRecipient: 'gone@example.com',
          },
        ],
      },
    ],
    [
      'postfix-relayed',
      {
        originalEnvelopeId: 'msg_x+1',
        arrivalDate: new Date('2026-03-02T10:11:11Z'),
        recipients: [
          {
            action: 'relayed',
            status: '2.0.0',
            diagnosticCode: 'smtp; 250 2.0.0 OK',
            finalRecipient: 'some+tag@example.com',
            originalRecipient: 'some+tag@example.com',
          },
        ],
      },
    ],
    [
      'exim-failed',
      {
        ...NONE,
        recipients: [
          {
            action: 'failed',
            status: '5.0.0',
            diagnosticCode: 'smtp; 552 5.2.2 mailbox full',
            finalRecipient: 'full@example.com',
            originalRecipient: null,
          },
        ],
      },
    ],
    [
      'exchange-base64',
      {
        originalEnvelopeId: null,
        arrivalDate: new Date('2026-03-02T10:11:11Z'),
        recipients: [
          {
            action: 'failed',
            status: '5.1.10',
            diagnosticCode:
              'smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient gone@corp.example not found by SMTP address lookup',
            finalRecipient: 'gone@corp.example',
            originalRecipient: null,
          },
        ],
      },
    ],
    [
      'gmail-delayed',
      {
        originalEnvelopeId: null,
        arrivalDate: new Date('2026-03-01T09:50:04Z'),
        recipients: [
          {
            action: 'delayed',
            status: '4.4.1',
            diagnosticCode:
              'smtp; The recipient server did not accept our requests to connect. Learn more at https://support.google.com/mail/answer/7720 [mx.example.org. 192.0.2.5: timed out]',
            finalRecipient: 'slow@example.org',
            originalRecipient: null,
          },
        ],
      },
    ],
    [
      'sendmail-several',
      {
        originalEnvelopeId: null,
        arrivalDate: new Date('2026-03-02T10:11:11Z'),
        recipients: [
          {
            action: 'failed',
            status: '5.1.1',
            diagnosticCode: 'SMTP; 550 5.1.1 User unknown',
            finalRecipient: 'first@example.com',
            originalRecipient: null,
          },
          {
            action: 'delivered',
            status: '2.1.5',
            diagnosticCode: null,
            finalRecipient: 'second@example.com',
            originalRecipient: null,
          },
          {
            action: 'expanded',
            status: null,
            diagnosticCode: null,
            finalRecipient: null,
            originalRecipient: null,
          },
        ],
      },
    ],
    [
      'international',
      {
        ...NONE,
        recipients: [
          {
            action: 'failed',
            status: '5.1.1',
            diagnosticCode: 'smtp; 550 5.1.1 ユーザー不明',
            finalRecipient: 'ドリ@example.jp',
            originalRecipient: 'ドリ@example.jp',
          },
        ],
      },
    ],
    [
      'no-separate-blocks',
      {
        ...NONE,
        recipients: [
          {
            action: 'failed',
            status: '5.7.1',
            diagnosticCode: 'smtp; 554 5.7.1 Message rejected as spam',
            finalRecipient: 'one@example.com',
            originalRecipient: null,
          },
        ],
      },
    ],
  ])('in the format of %s is parsed, with LF and with CRLF', async (name, expected) => {
    const raw = read(name);
    expect(await parseDeliveryReport(raw)).toEqual(expected);
    const crlf = Buffer.from(raw.toString('latin1').replace(/\r?\n/g, '\r\n'), 'latin1');
    expect(await parseDeliveryReport(Readable.from([crlf.subarray(0, 100), crlf.subarray(100)]))).toEqual(
      expected,
    );
  });

  test('in quoted-printable is parsed', async () => {
    const raw = read('postfix-failed')
      .toString('latin1')
      .replace(
        'message/delivery-status\n',
        'message/delivery-status\nContent-Transfer-Encoding: quoted-printable\n',
      )
      .replace('Action: failed', 'Action:=20fai=\nled');
    expect((await parseDeliveryReport(Buffer.from(raw)))?.recipients[0]?.action).toBe('failed');
  });

  test('from the development relay is parsed', async () => {
    const raw = await deliveryReport(
      'relay.test',
      {
        envelopeId: 'msg_1.0',
        returnPath: 'bounces+token@bounces.agents.test',
        arrivedAt: new Date('2026-03-02T10:11:11Z'),
        headers: 'Subject: Hello\r\n',
      },
      { address: 'gone@example.com', originalRecipient: 'rfc822;gone@example.com' },
      { action: 'failed', status: '5.1.1', diagnostic: '550 5.1.1 no such user' },
    );
    expect(await parseDeliveryReport(raw)).toEqual({
      originalEnvelopeId: 'msg_1.0',
      arrivalDate: new Date('2026-03-02T10:11:11Z'),
      recipients: [
        {
          action: 'failed',
          status: '5.1.1',
          diagnosticCode: 'smtp; 550 5.1.1 no such user',
          finalRecipient: 'gone@example.com',
          originalRecipient: 'gone@example.com',
        },
      ],
    });
  });
});

describe('parseDeliveryReport returns null', () => {
  const report = read('postfix-failed').toString('latin1');

  test.each([
    ['an empty message', ''],
    ['an ordinary message', 'Subject: hi\r\n\r\nAction: failed\r\nFinal-Recipient: rfc822; a@b\r\n'],
    ['a report forwarded as an attachment', `Content-Type: message/rfc822\n\n${report}`],
    [
      'a report within two embedded messages',
      `Content-Type: multipart/mixed; boundary=q\n\n--q\nContent-Type: message/rfc822\n\n${report}\n--q--\n`,
    ],
    [
      'a report without per-recipient fields',
      report.replace(/^(Action|Final-Recipient|Original-Recipient|Status):.*$/gm, ''),
    ],
    [
      'a report truncated before its machine-readable part',
      report.slice(0, report.indexOf('Content-Description: Delivery')),
    ],
    ['a multipart without boundary', 'Content-Type: multipart/report\n\nAction: failed\n'],
  ])('for %s', async (_what, raw) => {
    expect(await parseDeliveryReport(Buffer.from(raw, 'latin1'))).toBeNull();
  });

  test('and never throws for random bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), async (bytes) => {
        expect(await parseDeliveryReport(Buffer.from(bytes))).toBeNull();
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.nat(report.length), fc.nat(40), fc.string(), async (at, length, inserted) => {
        const damaged = report.slice(0, at) + inserted + report.slice(at + length);
        const found = await parseDeliveryReport(Buffer.from(damaged));
        expect(found === null || found.recipients.length > 0).toBe(true);
      }),
    );
  });

  test('after reading 4 MiB of an endless stream', async () => {
    let yieldedBytes = 0;
    function* endless() {
      yield Buffer.from('Subject: x\n\n');
      for (;;) {
        yieldedBytes += 65_536;
        yield Buffer.alloc(65_536, 'x\n');
      }
    }
    const stream = Readable.from(endless());
    expect(await parseDeliveryReport(stream)).toBeNull();
    expect(yieldedBytes).toBeLessThan(8 * 1024 * 1024);
    expect(stream.destroyed).toBe(true);
  });

  test.each([
    ['deeply nested boundaries', 'Content-Type: multipart/mixed; boundary=a\n\n--a\n'.repeat(50_000)],
    ['thousands of boundaries', `Content-Type: multipart/mixed; boundary=a\n\n${'--a\n\n'.repeat(500_000)}`],
    [
      'lines that resemble boundaries',
      `Content-Type: multipart/mixed; boundary=a\n\n${'--ab\n'.repeat(700_000)}`,
    ],
    ['white space', `Content-Type: message/delivery-status\n\n${' \n\t'.repeat(1_000_000)}`],
    ['one folded field', `Content-Type: message/delivery-status\n\nAction:${'\n x'.repeat(1_000_000)}`],
  ])('quickly for %s', async (_what, raw) => {
    expect(await expectWithin(2_000, () => parseDeliveryReport(Buffer.from(raw)))).toBeNull();
  });
});

describe('classifyBounce', () => {
  test.each([
    ['5.1.1', 'smtp; 550 5.1.1 User unknown', 'Permanent', 'NoEmail'],
    ['5.1.10', null, 'Permanent', 'NoEmail'],
    ['5.1.2', null, 'Permanent', 'NoEmail'],
    ['5.2.1', null, 'Permanent', 'NoEmail'],
    ['5.0.0', 'smtp; 550 No such user here', 'Permanent', 'NoEmail'],
    ['5.4.4', 'X-Postfix; Host or domain name not found. Name service error', 'Permanent', 'NoEmail'],
    [null, '550 mailbox unavailable', 'Permanent', 'NoEmail'],
    [null, '550-5.1.1 The account does not exist', 'Permanent', 'NoEmail'],
    ['5.7.1', '554 5.7.1 Recipient rejected: blocked by policy', 'Permanent', 'General'],
    ['5.7.1', '550 5.7.1 Message rejected as spam', 'Permanent', 'General'],
    ['5.3.4', '552 5.3.4 Message too big', 'Permanent', 'General'],
    ['5.0.0', '550 go away', 'Permanent', 'General'],
    [null, null, 'Permanent', 'General'],
    [null, 'host unreachable', 'Transient', 'General'],
    ['5.0.0', '550 host unreachable', 'Permanent', 'General'],
    ['5.1.1', 'The address is on the suppression list of your account', 'Permanent', 'Suppressed'],
    ['5.2.2', 'smtp; 552 5.2.2 mailbox full', 'Transient', 'General'],
    ['5.0.0', 'smtp; 552 5.2.2 mailbox full', 'Transient', 'General'],
    ['4.4.7', 'delivery time expired', 'Transient', 'General'],
    ['4.1.1', 'smtp; 450 4.1.1 User unknown', 'Transient', 'General'],
    [null, '421 try later', 'Transient', 'General'],
    ['5.1.1', 'smtp; 552 5.1.1 Mailbox is full', 'Transient', 'General'],
    ['5.2.1', 'smtp; 550 quota exceeded', 'Transient', 'General'],
    ['5.0.0', 'recipient reached disk quota', 'Transient', 'General'],
    [null, '552 Account does not have enough space', 'Transient', 'General'],
    [null, 'ErrMsg=mail box space not enough', 'Transient', 'General'],
    ['5.0.0', 'Skrzynka odbiorcy jest przepełniona', 'Transient', 'General'],
    ['5.0.0', 'Brevlådan är full', 'Transient', 'General'],
    [
      '5.0.0',
      'Host or domain name not found. Name service error: Host not found, try again',
      'Permanent',
      'NoEmail',
    ],
    ['5.3.4', '552 This message exceeds the maximum size', 'Permanent', 'General'],
    ['5.0.0', '552 This message exceeds the maximum size', 'Permanent', 'General'],
    ['5.1.1', 'smtp; 550 5.1.1 Message refused by our content filter', 'Permanent', 'General'],
    ['5.1.1', 'smtp; 550 max message size exceeded', 'Permanent', 'General'],
    [null, '554 email rejected due to security policies', 'Permanent', 'General'],
    [null, '550 BAD_RECIPIENT', 'Permanent', 'NoEmail'],
    [null, '550-anna@example.com is not an active address at this host', 'Permanent', 'NoEmail'],
    ['2.0.0', '550 5.1.1 no such user', 'Permanent', 'NoEmail'],
    [null, '554 Too many hops. Message body suppressed', 'Permanent', 'General'],
    [null, 'Refused. Fooware 5.1.1 for Unix', 'Permanent', 'General'],
    [null, 'Refused, version 5.2.1', 'Permanent', 'General'],
    [null, 'failed; 5.1.1 (bad destination mailbox address)', 'Permanent', 'NoEmail'],
    [null, 'smtp error 5.1.1', 'Permanent', 'NoEmail'],
  ])('classifies %s %j as %s, %s', (status, diagnostic, type, subType) => {
    expect(classifyBounce(status, diagnostic)).toEqual({ type, subType });
  });
});
