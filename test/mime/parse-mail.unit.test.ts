import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { type ParseOptions, parseMail } from '../../domain/mime/parse-mail.ts';

const FILE = ['--b', 'Content-Disposition: attachment; filename=f', '', 'file'];
const mailOf = (...parts: string[][]) =>
  ['Subject: Slow', 'Content-Type: multipart/mixed; boundary=b', '', ...parts.flat(), ''].join('\r\n');

const consumeFile: ParseOptions['consumeFile'] = async (_file, content) => void (await buffer(content));

describe('parseMail', () => {
  test('reads a slow source to its end', async () => {
    const raw = mailOf(...Array.from({ length: 10 }, () => FILE), ['--b--']);
    async function* trickle() {
      for (let at = 0; at < raw.length; at += 40) {
        await pause(5);
        yield Buffer.from(raw.slice(at, at + 40));
      }
    }
    const parsed = await parseMail(Readable.from(trickle()), { consumeFile });
    expect(parsed).toMatchObject({ parseError: null, subject: 'Slow' });
    expect(parsed.attachments).toHaveLength(10);
  });

  test('throws an error of the source', async () => {
    const raw = Readable.from(
      (async function* () {
        yield Buffer.from(mailOf(FILE));
        throw new Error('connection lost');
      })(),
    );
    await expect(parseMail(raw, { consumeFile })).rejects.toThrow('connection lost');
  });

  test('throws an error of the file consumer and closes the source', async () => {
    const raw = Readable.from([Buffer.from(mailOf(FILE, FILE, ['--b--']))]);
    const failing = parseMail(raw, {
      consumeFile: async () => {
        throw new Error('storage is down');
      },
    });
    await expect(failing).rejects.toThrow('storage is down');
    expect(raw.destroyed).toBe(true);
  });
});

test('gives files safe names, and a numbered name if they have none', async () => {
  const names = ['../../etc/pass\x01wd', 'C:\\\\a\\\\b.txt', '..', '文.txt'];
  const files = names.map((name) => [
    '--b',
    `Content-Disposition: attachment; filename="${name}"`,
    '',
    'file',
  ]);
  const raw = Readable.from([Buffer.from(mailOf(...files, ['--b--']))]);
  const { attachments } = await parseMail(raw, { consumeFile });
  expect(attachments.map(({ filename }) => filename)).toEqual(['passwd', 'b.txt', 'attachment-3', '文.txt']);
});

describe('keeps header, text and files of a message with', () => {
  const TEXT = ['--b', 'Content-Type: text/plain', '', 'Hello'];
  const nested = Array.from({ length: 2_000 }, (_, n) => [
    '--b',
    `Content-Type: multipart/mixed;\r\n\tboundary="b${n}"`,
    '',
    `--b${n}`,
  ]);
  const deep = (levels: string[][]) => levels.map((lines, n) => (n === 0 ? lines : lines.slice(1)));

  test.each([
    { what: '1,500 empty parts', parts: Array.from({ length: 1_500 }, () => ['--b', '', '']) },
    { what: '2,000 nested multiparts', parts: deep(nested) },
  ])('$what', async ({ parts }) => {
    const mail = mailOf(TEXT, FILE, FILE, ...parts, ['--b--']);
    for (const chunkCharacters of [mail.length, 7]) {
      const chunks = mail.match(new RegExp(`[^]{1,${chunkCharacters}}`, 'g')) ?? [];
      const raw = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
      const parsed = await parseMail(raw, { consumeFile });
      expect(parsed).toMatchObject({
        subject: 'Slow',
        text: expect.stringMatching(/^Hello/),
        parseError: 'The message has more than 900 parts; only the raw message contains the rest.',
      });
      expect(parsed.attachments).toMatchObject([{ filename: 'f' }, { filename: 'f' }]);
      expect(raw.destroyed).toBe(true);
    }
  });

  test('does not count lines that only resemble delimiters', async () => {
    const dashes = ['--', '--b2', '---b', ' --b', '--c'].flatMap((line) =>
      Array.from({ length: 1_000 }, () => line),
    );
    const raw = Readable.from([Buffer.from(mailOf([...TEXT, ...dashes], FILE, ['--b--']))]);
    const parsed = await parseMail(raw, { consumeFile });
    expect(parsed.parseError).toBeNull();
    expect(parsed.attachments).toHaveLength(1);
  });
});

describe('an 8-bit byte within an encoded word', () => {
  test.each([
    ['a windows-1252 byte in a UTF-8 word', '=?utf-8?Q?Caf=C3=A9_und_Gr\xfc=C3=9Fe?=', 'Café und Grüße'],
    ['the same byte twice', '=?utf-8?q?=C3=A9_\xe9\xe9?= Ende', 'é éé Ende'],
    ['UTF-8 in a UTF-8 word', '=?utf-8?Q?=E2=82=AC_\xc3\xa9?=', '€ é'],
    ['UTF-8 in a Latin-1 word', '=?iso-8859-1?Q?Caf=E9_\xc3\xa9?=', 'Café é'],
    ['Latin-1 in a Latin-1 word', '=?iso-8859-1?Q?Caf\xe9_=E9?=', 'Café é'],
    ['KOI8-R in a KOI8-R word', '=?koi8-r?Q?=F0\xd2\xc9\xd7=C5=D4?=', 'Привет'],
    ['Shift_JIS in a Shift_JIS word', '=?shift_jis?Q?=83e\x83X=83g?=', 'テスト'],
    ['a byte within base64', '=?utf-8?B?R3LDvMOf\xfcZQ==?=', 'Grüße'],
    ['a language tag', '=?iso-8859-1*de?Q?=FC\xfc?=', 'üü'],
    ['a byte before the word', 'Gr\xfc\xdfe =?utf-8?Q?=C3=A9?=', 'Grüße é'],
  ])('leaves the rest readable: %s', async (_what, subject, expected) => {
    const raw = Readable.from([Buffer.from(`Subject: ${subject}\r\n\r\nHi\r\n`, 'latin1')]);
    const parsed = await parseMail(raw, { consumeFile });
    expect([parsed.subject, parsed.headers.subject]).toEqual([expected, expected]);
  });
});
