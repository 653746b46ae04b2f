import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { rewriteSubmission } from '../../domain/outbound/rewrite-submission.ts';

const DEFAULTS = { messageId: 'msg_1@mail.test', date: new Date('2026-01-02T03:04:05Z') };
const COMPLETE = 'Message-ID: <own@client>\r\nDate: Fri, 2 Jan 2026 03:04:05 +0100\r\nFrom: a@mail.test\r\n';

async function submit(chunks: string[] | string): Promise<string> {
  const source = Readable.from([chunks].flat().map((chunk) => Buffer.from(chunk, 'latin1')));
  return (await buffer(source.pipe(rewriteSubmission(DEFAULTS)))).toString('latin1');
}

describe('the header of a submitted message', () => {
  test('gains missing fields, and loses Bcc and the fields of receiving servers', async () => {
    expect(
      await submit(
        'Return-Path: <x@y>\nbcc: one@x.test,\n two@x.test\nFrom: a@mail.test\nDelivered-To: z\n\nHello\n',
      ),
    ).toBe(
      'Message-ID: <msg_1@mail.test>\r\nDate: Fri, 02 Jan 2026 03:04:05 +0000\r\nFrom: a@mail.test\r\n\r\nHello\r\n',
    );
  });

  test.each([
    ['a complete message', `${COMPLETE}\r\nHello\r\n.\r\n`],
    ['8-bit octets', `${COMPLETE}Subject: caf\xe9\r\n\r\n\xff\xfe\x00\r\n`],
    ['folded fields', `${COMPLETE}Subject: long\r\n\tand folded\r\n  twice\r\n\r\nx`],
    ['no body', `${COMPLETE}\r\n`],
    ['a signed body', `${COMPLETE}Content-Type: multipart/signed\r\nMIME-Version: 1.0\r\n\r\n--x  \r\n\r\n`],
  ])('passes %s unchanged', async (_name, mail) => expect(await submit(mail)).toBe(mail));

  test('without its empty line is a message without a body', async () => {
    expect(await submit(COMPLETE)).toBe(`${COMPLETE}\r\n`);
    expect(await submit('')).toBe(
      'Message-ID: <msg_1@mail.test>\r\nDate: Fri, 02 Jan 2026 03:04:05 +0000\r\n\r\n',
    );
  });

  test('longer than 1 MiB is rejected', async () => {
    await expect(submit(Array.from({ length: 20 }, () => 'x'.repeat(100_000)))).rejects.toThrow(
      'longer than 1 MiB',
    );
  });
});

test('keeps a Bcc line in the body', async () => {
  expect(await submit(`${COMPLETE}\r\nBcc: in the text\r\n`)).toContain('Bcc: in the text');
});

test('gives the same result for any chunking', async () => {
  const part = fc.constantFrom(
    'Bcc: a@b\r\n',
    'X-A: b\n',
    ' folded\r\n',
    '\r\n',
    '\n',
    '\r',
    'text',
    'Date: now\r\n',
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(part, { maxLength: 12 }),
      fc.array(fc.nat(60), { maxLength: 6 }),
      async (parts, cuts) => {
        const mail = parts.join('');
        const boundaries = [
          0,
          ...cuts.map((cut) => Math.min(cut, mail.length)).sort((a, b) => a - b),
          mail.length,
        ];
        const chunks = boundaries
          .slice(1)
          .map((end, index) => mail.slice(boundaries[index], end))
          .filter(Boolean);
        const result = await submit(chunks);
        expect(result).toBe(await submit(mail));
        // No line ends without a CR.
        expect(/(?<!\r)\n/.test(result)).toBe(false);
      },
    ),
  );
});
