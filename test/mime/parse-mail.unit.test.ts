import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { type ParseOptions, parseMail } from '../../domain/mime/parse-mail.ts';

const FILE = ['--b', 'Content-Disposition: attachment; filename=f', '', 'file'];
const mailOf = (...parts: string[][]) =>
  ['Subject: Slow', 'Content-Type: multipart/mixed; boundary=b', '', ...parts.flat(), ''].join('\r\n');

const takeFile: ParseOptions['consumeFile'] = async (_file, content) => void (await buffer(content));

describe('a mail that storage hands over', () => {
  test('slowly, but steadily, is read to its end', async () => {
    const raw = mailOf(...Array.from({ length: 10 }, () => FILE), ['--b--']);
    async function* trickle() {
      for (let at = 0; at < raw.length; at += 40) {
        await pause(5);
        yield Buffer.from(raw.slice(at, at + 40));
      }
    }
    const parsed = await parseMail(Readable.from(trickle()), { consumeFile: takeFile });
    expect(parsed).toMatchObject({ parseError: null, subject: 'Slow' });
    expect(parsed.attachments).toHaveLength(10);
  });

  test('and breaks off is read again: the error is thrown', async () => {
    const raw = Readable.from(
      (async function* () {
        yield Buffer.from(mailOf(FILE));
        throw new Error('connection lost');
      })(),
    );
    await expect(parseMail(raw, { consumeFile: takeFile })).rejects.toThrow('connection lost');
  });

  test('whose file cannot be stored is read again: the error is thrown, the streams are closed', async () => {
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

test('files get names that are safe to save under, by their position where they bring none', async () => {
  const names = ['../../etc/pass\x01wd', 'C:\\\\a\\\\b.txt', '..', '文.txt'];
  const files = names.map((name) => [
    '--b',
    `Content-Disposition: attachment; filename="${name}"`,
    '',
    'file',
  ]);
  const raw = Readable.from([Buffer.from(mailOf(...files, ['--b--']))]);
  const { attachments } = await parseMail(raw, { consumeFile: takeFile });
  expect(attachments.map(({ filename }) => filename)).toEqual(['passwd', 'b.txt', 'attachment-3', '文.txt']);
});

describe('a mail of too many parts keeps what was read: its header, text and files', () => {
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
      const parsed = await parseMail(raw, { consumeFile: takeFile });
      expect(parsed).toMatchObject({
        subject: 'Slow',
        text: expect.stringMatching(/^Hello/),
        parseError: 'The mail has more than 900 parts; the rest is in the raw message alone.',
      });
      expect(parsed.attachments).toMatchObject([{ filename: 'f' }, { filename: 'f' }]);
      expect(raw.destroyed).toBe(true);
    }
  });

  test('lines that only look like the start of a part do not count', async () => {
    const dashes = ['--', '--b2', '---b', ' --b', '--c'].flatMap((line) =>
      Array.from({ length: 1_000 }, () => line),
    );
    const raw = Readable.from([Buffer.from(mailOf([...TEXT, ...dashes], FILE, ['--b--']))]);
    const parsed = await parseMail(raw, { consumeFile: takeFile });
    expect(parsed.parseError).toBeNull();
    expect(parsed.attachments).toHaveLength(1);
  });
});
