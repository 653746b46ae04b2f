import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { rewriteSubmission } from '../../domain/outbound/rewrite-submission.ts';
import { AppError } from '../../platform/errors.ts';

const DEFAULTS = {
  messageId: 'msg_1@mail.test',
  date: new Date('2026-01-02T03:04:05Z'),
  inboxEmail: 'a@mail.test',
};
const COMPLETE = 'Message-ID: <own@client>\r\nDate: Fri, 2 Jan 2026 03:04:05 +0100\r\nFrom: a@mail.test\r\n';

async function submit(chunks: string[] | string): Promise<string> {
  const source = Readable.from([chunks].flat().map((chunk) => Buffer.from(chunk, 'latin1')));
  return (await buffer(source.pipe(rewriteSubmission(DEFAULTS)))).toString('latin1');
}

const outcomeOf = (chunks: string[] | string) =>
  submit(chunks).catch((error: unknown) => (error instanceof AppError ? error.detail : String(error)));

/** Authors that a reader finds which takes these for line ends, and allows space before the colon. */
function authorsIn(mail: string, lineEnd: RegExp): string[] {
  const lines = mail.split(lineEnd);
  const end = lines.indexOf('');
  const unfolded: string[] = [];
  for (const line of end === -1 ? lines : lines.slice(0, end)) {
    if (/^[ \t]/.test(line)) unfolded.push(`${unfolded.pop() ?? ''}${line}`);
    else unfolded.push(line);
  }
  return unfolded.filter((line) => /^(?:from|sender)[ \t]*:/i.test(line));
}

describe('the author of a submitted message', () => {
  const FORGED = 'From: "Bob" <victim@bank.test>';

  test.each([
    ['a bare CR that hides another From', `X-A: b\r${FORGED}\r\r\nFrom: a@mail.test\r\n\r\nx`],
    ['a bare CR that hides an empty line', `${FORGED}\r\rFrom: a@mail.test\r\n\r\nx`],
    ['a bare LF', `X-A: b\n${FORGED}\r\nFrom: a@mail.test\r\n\r\nx`],
    ['a NUL', `X-A: \0\r\nFrom: a@mail.test\r\n\r\nx`],
    ['a space before the colon', `From : victim@bank.test\r\nFrom: a@mail.test\r\n\r\nx`],
    ['a folded name', `From: a@mail.test\r\nBcc\r\n : x@y.test\r\n\r\nx`],
    ['a folded first line', ` From: victim@bank.test\r\nFrom: a@mail.test\r\n\r\nx`],
    ['a line without a colon', `From: a@mail.test\r\nvictim\r\n\r\nx`],
  ])('is not read from a header with %s', async (_name, mail) => {
    await expect(submit(mail)).rejects.toMatchObject({ code: 'validation_error' });
  });

  test.each([
    ['two From fields', `From: a@mail.test\r\n${FORGED}\r\n\r\nx`],
    ['two addresses', 'From: a@mail.test, victim@bank.test\r\n\r\nx'],
    ['a group', 'From: us: a@mail.test;\r\n\r\nx'],
    ['another address', `${FORGED}\r\n\r\nx`],
    ['no address', 'From: a\r\n\r\nx'],
    ['no From', 'To: a@mail.test\r\n\r\nx'],
  ])('must be the inbox alone, not %s', async (_name, mail) => {
    await expect(submit(mail)).rejects.toMatchObject({ code: 'permission_denied' });
  });

  test('is rewritten with its display name, and Sender is removed', async () => {
    const sent = await submit(
      'Sender: victim@bank.test\r\nfrom: =?utf-8?q?J=C3=BCrgen?=\r\n <a+news@mail.test> (victim@bank.test)\r\nReply-To: b@x.test\r\n\r\nx',
    );
    expect(sent).toContain('\r\nFrom: =?UTF-8?Q?J=C3=BCrgen?= <a+news@mail.test>\r\n');
    expect(sent).toContain('\r\nReply-To: b@x.test\r\n');
    expect(sent).not.toMatch(/victim/);
  });

  test.each(['From', 'Sender', 'Reply-To', 'To', 'Cc', 'Bcc', 'Date', 'Message-ID', 'X-Other'])(
    'does not leave with a Resent-%s, which could name another person',
    async (name) => {
      const sent = await submit(
        `resent-${name}: victim@bank.test,\r\n\tvictim@bank.test\r\n${COMPLETE}RESENT-${name}: victim@bank.test\r\n\r\nx`,
      );
      expect(sent).toBe(`${COMPLETE}\r\nx`);
    },
  );

  test('is the only one that leaves, whatever is submitted', async () => {
    const part = fc.constantFrom(
      'From',
      'from',
      'Sender',
      'Bcc',
      'X-A',
      ':',
      ' : ',
      ' ',
      '\t',
      '\r\n',
      '\r',
      '\n',
      '\0',
      '\r\n\r\n',
      ',',
      '<',
      '>',
      '"',
      '(',
      ')',
      ';',
      '\\',
      '=?utf-8?q?',
      '=0D=0A',
      '?=',
      'a@mail.test',
      'victim@bank.test',
      'From: a@mail.test\r\n',
      'From: victim@bank.test',
    );
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.array(part, { maxLength: 12 }), async (isComplete, parts) => {
        const start = isComplete ? 'From: a@mail.test\r\n' : '';
        const sent = await submit(`${start}${parts.join('')}\r\n\r\nbody`).catch(() => null);
        if (sent === null) return;
        accepted += 1;
        for (const lineEnd of [/\r\n/, /\r?\n/, /\r\n|\r|\n/]) {
          const authors = authorsIn(sent, lineEnd);
          expect(authors).toHaveLength(1);
          expect(authors[0]).toMatch(/a@mail\.test>?$/);
          // A quoted name is no address, whatever it says.
          expect(authors[0]?.replaceAll(/"(?:\\.|[^"\\])*"/g, '""')).not.toMatch(/<victim|, ?victim/);
        }
      }),
      {
        numRuns: 2_000,
        examples: [[false, ['From', ':', '"', ',', 'victim@bank.test', '"', '<', 'a@mail.test', '>']]],
      },
    );
    expect(accepted).toBeGreaterThan(50);
  });
});

describe('the header of a submitted message', () => {
  test('gains missing fields, and loses Bcc and the fields of receiving servers', async () => {
    expect(
      await submit(
        'Return-Path: <x@y>\r\nbcc: one@x.test,\r\n two@x.test\r\nFrom: a@mail.test\r\nDelivered-To: z\r\n\r\nHello\n',
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
    expect(await submit('From: a@mail.test')).toBe(
      'Message-ID: <msg_1@mail.test>\r\nDate: Fri, 02 Jan 2026 03:04:05 +0000\r\nFrom: a@mail.test\r\n\r\n',
    );
  });

  test('longer than 256 KiB is rejected', async () => {
    await expect(submit(Array.from({ length: 20 }, () => 'x'.repeat(100_000)))).rejects.toThrow(
      'longer than 256 KiB',
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
        const mail = `From: a@mail.test\r\n${parts.join('')}`;
        const boundaries = [
          0,
          ...cuts.map((cut) => Math.min(cut, mail.length)).sort((a, b) => a - b),
          mail.length,
        ];
        const chunks = boundaries
          .slice(1)
          .map((end, index) => mail.slice(boundaries[index], end))
          .filter(Boolean);
        const result = await outcomeOf(chunks);
        expect(result).toBe(await outcomeOf(mail));
        // No line ends without a CR, and no CR stands without an LF.
        expect(/(?<!\r)\n|\r(?!\n)/.test(result)).toBe(false);
      },
    ),
  );
});
