import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, test } from '@jest/globals';
import {
  createParserPool,
  type ParseJobOptions,
  type ParserPool,
  type ParserPoolOptions,
} from '../../domain/mime/parser/pool.ts';
import { eventually } from '../support/eventually.ts';

const ENTRY = resolve(import.meta.dirname, '../../workers/mail-parser.ts');
const MISBEHAVING = join(import.meta.dirname, 'misbehaving-parser.ts');

const opened: ParserPool[] = [];
const open = (options: Parameters<typeof createParserPool>[0]) => {
  const pool = createParserPool(options);
  opened.push(pool);
  return pool;
};
afterAll(() => Promise.all(opened.map((pool) => pool.close())));

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

describe('the parser pool', () => {
  const pool = open({ entry: ENTRY, processes: 2 });

  test('returns header, text, extracted reply and files', async () => {
    const raw = mailWith('one', 'x'.repeat(3_000_000));
    const mail = await pool.parse(Readable.from(chunksOf(raw, 60_000)), {
      organizationId: 'org_1',
      storeFile,
    });
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

  test('starts a process ahead of the next message', async () => {
    const warm = open({ entry: MISBEHAVING, processes: 1 });
    expect(warm.usage()).toEqual({ busy: 0, idle: 1, waiting: 0 });
    const parsing = warm.parse(Readable.from([Buffer.from('sleep')]), { organizationId: 'org_1', storeFile });
    await eventually(() => expect(warm.usage()).toEqual({ busy: 1, idle: 1, waiting: 0 }));
    await parsing;
    expect(warm.usage()).toEqual({ busy: 0, idle: 2, waiting: 0 });
  });

  test('keeps concurrent messages apart', async () => {
    const subjects = Array.from({ length: 40 }, (_, n) => `Number ${n}`);
    const results = await Promise.all(
      subjects.map((subject) =>
        pool.parse(Readable.from([Buffer.from(`Subject: ${subject}\r\n\r\nText of ${subject}`)]), {
          organizationId: 'org_1',
          storeFile,
        }),
      ),
    );
    expect(results.map(({ subject }) => subject)).toEqual(subjects);
    expect(results.map(({ text }) => text)).toEqual(subjects.map((subject) => `Text of ${subject}`));
  });

  test('waits for slow storage without buffering the message', async () => {
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
    const mail = await pool.parse(source, {
      organizationId: 'org_1',
      async storeFile(index, content, contentType) {
        await pause(300);
        seen.push(handedOut);
        return storeFile(index, content, contentType);
      },
    });
    expect(mail.attachments[0]?.stored.sizeBytes).toBe(20_000_000);
    expect(seen[0]).toBeLessThan(4_000_000);
  });

  test('throws errors of source and storage, and parses the next message', async () => {
    const broken = Readable.from(
      (async function* () {
        yield mailWith('x'.repeat(200_000)).subarray(0, 100_000);
        throw new Error('connection lost');
      })(),
    );
    await expect(pool.parse(broken, { organizationId: 'org_1', storeFile })).rejects.toThrow(
      'connection lost',
    );
    const failing: ParseJobOptions['storeFile'] = async () => {
      throw new Error('storage is down');
    };
    await expect(
      pool.parse(Readable.from([mailWith('x'.repeat(500_000))]), {
        organizationId: 'org_1',
        storeFile: failing,
      }),
    ).rejects.toThrow('storage is down');
    expect(
      await pool.parse(Readable.from([mailWith()]), { organizationId: 'org_1', storeFile }),
    ).toMatchObject({ text: 'Hello' });
  });

  test('does not leak a truncated message into the next one', async () => {
    const endless = `${mailWith().toString().replace('--b--', '--b\r\n\r\npart\r\n'.repeat(5_000))}${'x'.repeat(2_000_000)}`;
    const [cut, next] = [
      await pool.parse(Readable.from(chunksOf(Buffer.from(endless), 60_000)), {
        organizationId: 'org_1',
        storeFile,
      }),
      await pool.parse(Readable.from([mailWith()]), { organizationId: 'org_1', storeFile }),
    ];
    expect(cut.parseError).toMatch(/more than 900 parts/);
    expect(next).toMatchObject({ subject: 'Files', text: 'Hello', parseError: null });
  });
});

describe('the parser pool, with a misbehaving parser,', () => {
  const read = (
    order: string,
    limits: Pick<ParserPoolOptions, 'stallTimeoutMs' | 'totalTimeoutMs' | 'maxResidentBytes'>,
  ) => {
    const raw = Readable.from([Buffer.from(order)]);
    return open({ entry: MISBEHAVING, processes: 1, minCpuMs: 200, ...limits }).parse(raw, {
      organizationId: 'org_1',
      storeFile,
    });
  };

  // The time-outs include the start of the process, which takes seconds on a busy machine.
  test.each([
    {
      what: 'kills a parser that makes no progress',
      order: 'spin',
      limits: { stallTimeoutMs: 6_000 },
      why: 'no progress for 6000 ms',
    },
    {
      what: 'kills a parser that exceeds the total timeout',
      order: 'spin',
      limits: { totalTimeoutMs: 6_000 },
      why: 'it took more than 6000 ms',
    },
    {
      what: 'kills a parser that exceeds the memory limit',
      order: 'grow',
      limits: { maxResidentBytes: 128 * 1024 * 1024 },
      why: 'it used more than 128 MiB',
    },
    { what: 'detects a parser that crashes', order: 'die', limits: {}, why: 'its process ended' },
    {
      what: 'aborts the upload when a parser crashes within a file',
      order: 'break a file off',
      limits: {},
      why: 'its process ended',
    },
  ])('$what, and keeps the header', async ({ order, limits, why }) => {
    expect(await read(order, limits)).toMatchObject({
      subject: 'Sent before',
      text: null,
      attachments: [],
      parseError: `The message could not be parsed: its parser was stopped, ${why}.`,
    });
  });

  describe('one that got no processor time', () => {
    /** The start of a process takes time of its own. */
    const readWarm = async (limits: Pick<ParserPoolOptions, 'stallTimeoutMs' | 'totalTimeoutMs'>) => {
      const pool = open({ entry: MISBEHAVING, processes: 1, minCpuMs: 200, ...limits });
      const parse = (order: string) =>
        pool.parse(Readable.from([Buffer.from(order)]), { organizationId: 'org_1', storeFile });
      expect(await parse('behave')).toMatchObject({ subject: 'Sent before', parseError: null });
      return parse('sleep');
    };

    test('may go on after the stall timeout', async () => {
      expect(await readWarm({ stallTimeoutMs: 6_000 })).toMatchObject({ parseError: null });
    });

    test('is stopped at the total timeout, and the message is tried again', async () => {
      const parsed = readWarm({ totalTimeoutMs: 6_000 });
      await expect(parsed).rejects.toMatchObject({ code: 'unavailable', status: 503 });
    });
  });
});
