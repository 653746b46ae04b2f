import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { HEADER_LIMITS, limitHeader, limitHeaderBytes } from '../../domain/mime/header-limit.ts';
import { parseMail } from '../../domain/mime/parse-mail.ts';

const { maxBytes, maxLines, maxFields } = HEADER_LIMITS;
const chunksOf = (bytes: Buffer, size: number) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size));

async function limit(message: string, chunkBytes = 65_536) {
  const problems: string[] = [];
  const source = Readable.from(chunksOf(Buffer.from(message, 'latin1'), chunkBytes));
  const limited = await buffer(source.pipe(limitHeader((problem) => problems.push(problem))));
  return { limited: limited.toString('latin1'), problems };
}

describe('the header limit', () => {
  test.each([
    {
      what: 'fields',
      extra: 'X-A: b\r\n'.repeat(maxFields + 1),
      kept: 'X-A: b\r\n'.repeat(maxFields - 1),
      why: `${maxFields} fields`,
    },
    {
      what: 'lines, at the start of the field that exceeds it',
      extra: `X-A: b\r\nX-B: c${'\r\n c'.repeat(maxLines)}\r\n`,
      kept: 'X-A: b\r\n',
      why: `${maxLines} lines`,
    },
    {
      what: 'bytes, at the start of the field that exceeds it',
      extra: `X-A: b\r\n${'c'.repeat(maxBytes)}\r\n`,
      kept: 'X-A: b\r\n',
      why: `${maxBytes / 1_048_576} MiB`,
    },
  ])('truncates a header with too many $what, and keeps the body', async ({ extra, kept, why }) => {
    const message = `From: a@b.example\r\n${extra}To: c@d.example\r\n\r\nbody\r\n\r\nmore`;
    const expected = `From: a@b.example\r\n${kept}\r\nbody\r\n\r\nmore`;
    for (const chunkBytes of [1_000, 65_536, 100_000_000]) {
      const { limited, problems } = await limit(message, chunkBytes);
      expect(limited === expected).toBe(true);
      expect(problems).toEqual([`The header has more than ${why}; only the raw message contains the rest.`]);
    }
    const whole = limitHeaderBytes(Buffer.from(message, 'latin1'));
    expect(whole.message.toString('latin1') === expected).toBe(true);
    expect(whole.problem).toContain(why);
  });

  test('passes any other message on unchanged, however it is split', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('\r\n', '\n', '\r', 'A: b', ' c', ':', 'x'), { maxLength: 30 }),
        fc.integer({ min: 1, max: 8 }),
        async (pieces, chunkBytes) => {
          const message = pieces.join('');
          expect(await limit(message, chunkBytes)).toEqual({ limited: message, problems: [] });
        },
      ),
    );
  });

  test('leaves a message with its first fields, its text, an error and an uncertain author', async () => {
    const raw = `From: a@b.example\r\nSubject: Hi\r\n${'X-A: b\r\n'.repeat(5_000)}From: c@d.example\r\n\r\nHello`;
    const mail = await parseMail(Readable.from([Buffer.from(raw)]), {
      async consumeFile(_file, content) {
        content.resume();
      },
    });
    expect(mail).toMatchObject({
      from: { email: 'a@b.example' },
      subject: 'Hi',
      text: 'Hello',
      isAuthorAmbiguous: true,
      parseError: `The header has more than ${maxFields} fields; only the raw message contains the rest.`,
    });
  });
});

describe('white space in a header', () => {
  const shorten = async (header: string) => {
    const limited = Readable.from([Buffer.from(`${header}\r\n\r\nbody`)]).pipe(
      limitHeader(() => {}, { maxSpaces: 4 }),
    );
    return (await buffer(limited)).toString();
  };

  test.each([
    ['A: b', 'A: b'],
    [`A: b${' '.repeat(9)}c`, 'A: b    c'],
    [`A: b\t \t \t \tc`, 'A: b\t \t c'],
    [`A: b${'\r\n '.repeat(5)}c\r\nB: d`, 'A: b\r\n \rc\r\nB: d'],
    [`A: b${'\r'.repeat(9)}c`, 'A: b\r\r\r\rc'],
    ['A: b\r\n c\r\nB: d', 'A: b\r\n c\r\nB: d'],
  ])('of %j is at most as long as allowed', async (header, expected) => {
    expect(await shorten(header)).toBe(`${expected}\r\n\r\nbody`);
  });
});
