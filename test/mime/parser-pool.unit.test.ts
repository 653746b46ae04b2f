import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, test } from '@jest/globals';
import { createParserPool, type ParseJobOptions, type ParserPool } from '../../domain/mime/parser/pool.ts';

const ENTRY = resolve(import.meta.dirname, '../../workers/mail-parser.ts');
const MISBEHAVING = join(import.meta.dirname, 'misbehaving-parser.ts');

const opened: ParserPool[] = [];
const open = (options: Parameters<typeof createParserPool>[0]) => {
  const reader = createParserPool(options);
  opened.push(reader);
  return reader;
};
afterAll(() => Promise.all(opened.map((reader) => reader.close())));

const storeFile: ParseJobOptions['storeFile'] = async (index, content) => {
  const bytes = await buffer(content);
  return { key: `key-${index}`, stored: { sizeBytes: bytes.length, sha256: Buffer.alloc(32) } };
};
const mailWith = (...files: string[]) =>
  Buffer.from(
    [
      'Subject: Files',
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      '',
      'Hello',
      ...files.flatMap((file) => ['--b', 'Content-Disposition: attachment; filename=f', '', file]),
      '--b--',
      '',
    ].join('\r\n'),
  );
const chunksOf = (bytes: Buffer, size: number) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size));

describe('mails read in processes of their own', () => {
  const reader = open({ entry: ENTRY, processes: 2 });

  test('arrive whole: header, text, what was written anew, and files', async () => {
    const raw = mailWith('one', 'x'.repeat(3_000_000));
    const mail = await reader.parse(Readable.from(chunksOf(raw, 60_000)), { storeFile });
    expect(mail).toMatchObject({
      subject: 'Files',
      text: 'Hello',
      html: null,
      extractedText: 'Hello',
      parseError: null,
    });
    expect(mail.attachments).toMatchObject([
      { filename: 'f', storageKey: 'key-0', stored: { sizeBytes: 3 } },
      { filename: 'f', storageKey: 'key-1', stored: { sizeBytes: 3_000_000 } },
    ]);
  });

  test('many at once do not mix', async () => {
    const subjects = Array.from({ length: 40 }, (_, n) => `Number ${n}`);
    const mails = await Promise.all(
      subjects.map((subject) =>
        reader.parse(Readable.from([Buffer.from(`Subject: ${subject}\r\n\r\nText of ${subject}`)]), {
          storeFile,
        }),
      ),
    );
    expect(mails.map(({ subject }) => subject)).toEqual(subjects);
    expect(mails.map(({ text }) => text)).toEqual(subjects.map((subject) => `Text of ${subject}`));
  });

  test('wait for slow storage without being held in memory', async () => {
    let handedOut = 0;
    const source = Readable.from(
      (async function* () {
        for (const chunk of chunksOf(mailWith('y'.repeat(20_000_000)), 65_536)) {
          handedOut += chunk.length;
          yield chunk;
        }
      })(),
    );
    const seen: number[] = [];
    const mail = await reader.parse(source, {
      async storeFile(index, content, contentType) {
        await pause(300);
        seen.push(handedOut);
        return storeFile(index, content, contentType);
      },
    });
    expect(mail.attachments[0]?.stored.sizeBytes).toBe(20_000_000);
    expect(seen[0]).toBeLessThan(4_000_000);
  });

  test('whose source or storage fails are the caller’s to read again, and the next one is read', async () => {
    const broken = Readable.from(
      (async function* () {
        yield mailWith('x'.repeat(200_000)).subarray(0, 100_000);
        throw new Error('connection lost');
      })(),
    );
    await expect(reader.parse(broken, { storeFile })).rejects.toThrow('connection lost');
    const failing: ParseJobOptions['storeFile'] = async () => {
      throw new Error('storage is down');
    };
    await expect(
      reader.parse(Readable.from([mailWith('x'.repeat(500_000))]), { storeFile: failing }),
    ).rejects.toThrow('storage is down');
    expect(await reader.parse(Readable.from([mailWith()]), { storeFile })).toMatchObject({ text: 'Hello' });
  });

  test('that are cut after too many parts leave nothing for the next', async () => {
    const endless = `${mailWith().toString().replace('--b--', '--b\r\n\r\npart\r\n'.repeat(5_000))}${'x'.repeat(2_000_000)}`;
    const [cut, next] = [
      await reader.parse(Readable.from(chunksOf(Buffer.from(endless), 60_000)), { storeFile }),
      await reader.parse(Readable.from([mailWith()]), { storeFile }),
    ];
    expect(cut.parseError).toMatch(/more than 900 parts/);
    expect(next).toMatchObject({ subject: 'Files', text: 'Hello', parseError: null });
  });
});

describe('a parser that', () => {
  const read = (
    order: string,
    limits: { stalledMs?: number; totalMs?: number; maxResidentBytes?: number },
  ) => {
    const raw = Readable.from([Buffer.from(order)]);
    return open({ entry: MISBEHAVING, processes: 1, ...limits }).parse(raw, { storeFile });
  };

  test.each([
    {
      what: 'does not come to an end is killed',
      order: 'spin',
      limits: { stalledMs: 1_500 },
      why: 'nothing moved for 1500 ms',
    },
    {
      what: 'takes too long in all is killed',
      order: 'spin',
      limits: { totalMs: 1_500 },
      why: 'it took more than 1500 ms',
    },
    {
      what: 'takes too much memory is killed',
      order: 'grow',
      limits: { maxResidentBytes: 128 * 1024 * 1024 },
      why: 'it took more than 128 MiB',
    },
    { what: 'dies is missed', order: 'die', limits: {}, why: 'it ended by itself' },
    {
      what: 'dies in the middle of a file is missed, and the file let go',
      order: 'break a file off',
      limits: {},
      why: 'it ended by itself',
    },
  ])('$what; the header it told is kept', async ({ order, limits, why }) => {
    expect(await read(order, limits)).toMatchObject({
      subject: 'Told before',
      text: null,
      attachments: [],
      parseError: `The mail could not be read: its parser was stopped, ${why}.`,
    });
  });
});
