import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseFeedbackReport } from '../../domain/delivery-reports/feedback-report.ts';

const REPORTED = `Return-Path: <bounces+abc@bounces.agents.test>
Received: from relay.agents.test by mx.provider.example; Thu, 5 Mar 2026 08:00:00 +0000
From: Agent <agent@agents.test>
To: reader@provider.example
Subject: News
Message-ID: <msg_1@agents.test>

Hello
`;

function arf(report: string, reportType = 'message/feedback-report'): string {
  return `From: <fbl@provider.example>
To: <complaints@agents.test>
Subject: FW: News
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report;
 boundary="cut"

--cut
Content-Type: text/plain; charset="US-ASCII"

This is an email abuse report.

--cut
Content-Type: ${reportType}

${report}
--cut
Content-Type: message/rfc822
Content-Disposition: inline

${REPORTED}
--cut--
`;
}

const FULL = `Feedback-Type: abuse
User-Agent: SomeGenerator/1.0
Version: 1
Original-Mail-From: <bounces+abc@bounces.agents.test>
Original-Rcpt-To: <reader@provider.example>
Original-Rcpt-To: <other@provider.example>
Arrival-Date: Thu, 5 Mar 2026 08:00:00 +0000
Source-IP: 192.0.2.1
`;

describe('a feedback report', () => {
  test.each([
    ['with LF', arf(FULL)],
    ['with CRLF', arf(FULL).replaceAll('\n', '\r\n')],
    ['with a machine-readable part of type text', arf(FULL, 'text/plain')],
    ['with an empty line between its fields', arf(FULL.replace('Version', '\nVersion'))],
  ])('%s is parsed, with the header of the reported message', (_what, raw) => {
    const report = parseFeedbackReport(Buffer.from(raw));
    expect(report).toMatchObject({
      feedbackType: 'abuse',
      userAgent: 'SomeGenerator/1.0',
      originalMailFrom: 'bounces+abc@bounces.agents.test',
      sourceIp: '192.0.2.1',
      arrivalDate: new Date('2026-03-05T08:00:00Z'),
    });
    expect(report?.originalRecipients).toEqual(['reader@provider.example', 'other@provider.example']);
    expect(report?.reportedFields.get('message-id')).toBe('<msg_1@agents.test>');
    expect(report?.reportedFields.get('return-path')).toBe('<bounces+abc@bounces.agents.test>');
  });

  test('without a type is abuse, with the sender of the reported message', () => {
    expect(parseFeedbackReport(Buffer.from(arf('User-Agent: x/1\nVersion: 1\n')))).toMatchObject({
      feedbackType: 'abuse',
      originalMailFrom: 'bounces+abc@bounces.agents.test',
      originalRecipients: [],
    });
  });

  test.each([['not-spam'], ['fraud'], ['opt-out'], ['virus'], ['other']])('keeps the type %s', (type) => {
    const raw = arf(`Feedback-Type: ${type.toUpperCase()}\nUser-Agent: x\nVersion: 1\n`);
    expect(parseFeedbackReport(Buffer.from(raw))?.feedbackType).toBe(type);
  });

  test('from a provider that attaches only the reported message is parsed', () => {
    const raw = `From: staff@hotmail.com
To: complaints@agents.test
Subject: complaint about message from 192.0.2.1
Content-Type: multipart/mixed; boundary="cut"

--cut
Content-Type: message/rfc822

X-HmXmrOriginalRecipient: reader@hotmail.example
${REPORTED}
--cut--
`;
    expect(parseFeedbackReport(Buffer.from(raw))).toMatchObject({
      feedbackType: 'abuse',
      userAgent: null,
      originalRecipients: ['reader@hotmail.example'],
      originalMailFrom: 'bounces+abc@bounces.agents.test',
    });
  });

  test.each([
    ['an empty message', ''],
    ['an ordinary message', 'From: a@b.example\nSubject: complaint\n\nFeedback-Type: abuse\n'],
    [
      'a forwarded message',
      arf(FULL).replace(/--cut\nContent-Type: message\/feedback-report[\s\S]*?(?=--cut)/, ''),
    ],
    ['a report within an embedded message', `Content-Type: message/rfc822\n\n${arf(FULL)}`],
  ])('is not found in %s', (_what, raw) => {
    const adjusted = raw.replace('<fbl@provider.example>', '<friend@provider.example>');
    expect(parseFeedbackReport(Buffer.from(adjusted))).toBeNull();
  });

  test('never throws, for truncated reports and random bytes', () => {
    const report = Buffer.from(arf(FULL));
    for (let length = 0; length < report.length; length += 1) parseFeedbackReport(report.subarray(0, length));
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
        expect(parseFeedbackReport(Buffer.from(bytes))).toBeNull();
      }),
    );
  });
});
