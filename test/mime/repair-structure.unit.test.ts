import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseMail } from '../../domain/mime/parse-mail.ts';
import { repairStructure } from '../../domain/mime/repair-structure.ts';

const split = (message: string, size: number) => {
  const bytes = Buffer.from(message, 'latin1');
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
    bytes.subarray(n * size, (n + 1) * size),
  );
};

async function read(message: string, size = 1_000_000) {
  const files: string[] = [];
  const mail = await parseMail(Readable.from(split(message, size)), {
    consumeFile: async (_file, content) => void files.push((await buffer(content)).toString()),
  });
  return { ...mail, files };
}

const join = (...lines: string[]) => lines.join('\r\n');
const HEADER = ['From: a@b.example', 'Subject: Hi'];
const MIXED = 'Content-Type: multipart/mixed; boundary="right"';
const PLAIN = 'Content-Type: text/plain';

describe('finds the text of a message', () => {
  test.each([
    [
      'with another boundary than the declared one',
      [MIXED, '', '--wrong', PLAIN, '', 'Hello', '--wrong--', ''],
    ],
    [
      'with another boundary, and text before its first part',
      [MIXED, '', 'Preamble', '', '--wrong', PLAIN, '', 'Hello', '--wrong--'],
    ],
    ['with another boundary, before parts without fields', [MIXED, '', '--wrong', '', 'Hello', '--wrong--']],
    [
      'without a boundary',
      ['Content-Type: multipart/alternative', '', '--wrong', PLAIN, '', 'Hello', '--wrong--'],
    ],
    [
      'with an empty boundary',
      ['Content-Type: multipart/mixed; boundary=""', '', '--', '', '--w', PLAIN, '', 'Hello', '--w--'],
    ],
    [
      'with a boundary that is wrong in a part',
      [
        MIXED,
        '',
        '--right',
        'Content-Type: multipart/alternative; boundary=b',
        '',
        '--c',
        PLAIN,
        '',
        'Hello',
        '--c--',
        '',
        '--right--',
      ],
    ],
    [
      'whose inner multipart never ends',
      [
        MIXED,
        '',
        '--right',
        'Content-Type: multipart/related; boundary=b',
        '',
        '--b',
        'Content-Type: multipart/mixed; boundary=c',
        '',
        '--c',
        PLAIN,
        '',
        'Hello',
        '--right',
        'Content-Disposition: attachment; filename=f',
        '',
        'file',
        '--right--',
      ],
    ],
    ['with white space after its delimiters', [MIXED, '', '--right \t', PLAIN, '', 'Hello', '--right-- ']],
    ['with the type text', ['Content-Type: text', '', 'Hello']],
    ['with the type text and a charset', ['Content-Type: text; charset=utf-8', '', 'Hello']],
    ['with a type without its subtype', ['Content-Type: text/', '', 'Hello']],
    ['with an empty type', ['Content-Type: ', '', 'Hello']],
    ['with a parameter after a space', ['Content-Type: text/plain charset=utf-8', '', 'Hello']],
    ['with two types in one field', ['Content-Type: text/plain, text/html', '', 'Hello']],
    [
      'with the type multipart',
      ['Content-Type: multipart; boundary=right', '', '--right', PLAIN, '', 'Hello', '--right--'],
    ],
    ['without an empty line before its first delimiter', [MIXED, '--right', PLAIN, '', 'Hello', '--right--']],
    ['without an empty line before a wrong delimiter', [MIXED, '--wrong', PLAIN, '', 'Hello', '--wrong--']],
    ['without an empty line after its header', ['Hello', 'more']],
    ['without an empty line after its header, and with one later', ['Hello', '', 'more']],
    ['without an empty line after the header of a part', [MIXED, '', '--right', PLAIN, 'Hello', '--right--']],
    ['without a header in a part', [MIXED, '', '--right', 'Hello', '--right--']],
    ['whose part only resembles a header', [MIXED, '', '--right', 'Greeting: Hello', '--right--']],
    ['whose part only resembles a header and never ends', [MIXED, '', '--right', 'Greeting: Hello']],
    ['with a transfer encoding in quotes', ['Content-Transfer-Encoding: "base64"', '', 'SGVsbG8=']],
  ])('%s', async (_what, lines) => {
    for (const size of [1, 7, 1_000_000]) {
      const mail = await read(join(...HEADER, ...lines), size);
      expect(mail.text).toContain('Hello');
      expect(mail).toMatchObject({ subject: 'Hi', parseError: null, isAuthorAmbiguous: false });
    }
  });

  test('and keeps an odd line within a header', async () => {
    const mail = await read(join('Received: by a', 'which is not folded', ...HEADER, '', 'Hello'));
    expect(mail).toMatchObject({ subject: 'Hi', text: 'Hello', from: { email: 'a@b.example' } });
  });

  test('and the file after a multipart that never ends', async () => {
    const mail = await read(
      join(
        ...[...HEADER, MIXED, '', '--right', 'Content-Type: multipart/related; boundary=b', '', '--b'],
        ...['Content-Type: multipart/alternative; boundary=c', '', '--c', PLAIN, '', 'Hello', '--right'],
        ...['Content-Disposition: attachment; filename=f', '', 'file', '--right--', ''],
      ),
    );
    expect(mail).toMatchObject({ text: 'Hello', files: ['file'], parseError: null });
  });
});

test('says that parts are missing, and gives what is there as text', async () => {
  const mail = await read(join(...HEADER, MIXED, '', 'This is a message in MIME format.', ''));
  expect(mail).toMatchObject({
    text: 'This is a message in MIME format.\n',
    parseError: expect.stringContaining('none could be found'),
  });
});

test.each([
  ['an empty multipart', [MIXED, '', '']],
  ['an empty part', [MIXED, '', '--right', PLAIN, '', '', '--right--']],
  [
    'a file alone',
    [MIXED, '', '--right', 'Content-Disposition: attachment; filename=f', '', 'file', '--right--'],
  ],
])('has no error for %s', async (_what, lines) => {
  expect((await read(join(...HEADER, ...lines))).parseError).toBeNull();
});

test('leaves what is declared as a file a file', async () => {
  const mail = await read(join(...HEADER, 'Content-Type: nonsense; name=f.bin', '', 'file'));
  expect(mail).toMatchObject({ text: null, files: ['file'] });
});

test('reads hundreds of thousands of lines in a header and in a multipart', async () => {
  for (const start of [join(...HEADER), join(...HEADER, MIXED, '', '')]) {
    for (const line of ['\n a', '\na:', '\n', '\n--b']) {
      const repaired = await buffer(
        Readable.from([Buffer.from(start + line.repeat(400_000))]).pipe(repairStructure(() => {})),
      );
      expect(repaired.length).toBeGreaterThan(400_000);
    }
  }
});

interface Part {
  lines: string[];
  texts: string[];
}
const leaf = fc
  .constantFrom('one', 'two', 'three')
  .map((text): Part => ({ lines: [PLAIN, '', `${text} said`], texts: [`${text} said`] }));
/** A multipart of these parts, whose boundary is unique. */
const multipart = (parts: Part[], id: number): Part => ({
  lines: [
    `Content-Type: multipart/mixed;\r\n boundary="=_b${id}"`,
    '',
    ...(id % 2 === 0 ? ['Preamble'] : []),
    ...parts.flatMap(({ lines }) => [`--=_b${id}`, ...lines]),
    `--=_b${id}--`,
  ],
  texts: parts.flatMap(({ texts }) => texts),
});
const parts = fc.array(leaf, { minLength: 1, maxLength: 3 });
const message = fc
  .tuple(parts, parts, fc.nat(1_000))
  .map(([inner, outer, id]) => multipart([multipart(inner, id), ...outer], id + 1_001));

test('leaves a well-formed message unchanged, however it is split', async () => {
  await fc.assert(
    fc.asyncProperty(message, fc.integer({ min: 1, max: 50 }), async ({ lines }, size) => {
      const raw = join(...HEADER, ...lines, 'Epilogue', '');
      const repaired = await buffer(Readable.from(split(raw, size)).pipe(repairStructure(() => {})));
      expect(repaired.toString('latin1')).toBe(raw);
    }),
  );
});

test('never loses text without a word, whatever is broken', async () => {
  const defects: Record<string, (lines: string[], at: number) => string[]> = {
    'no empty lines': (lines) => lines.filter((line) => line !== ''),
    // After the end of a multipart, text without a delimiter is an epilogue, which mail clients do not show.
    'one line less': (lines, at) => lines.filter((line, n) => n !== at || /^--|said$/.test(line)),
    'another boundary in the field': (lines) =>
      lines.map((line) => line.replace('boundary="=_b', 'boundary="=_x')),
    'no boundary': (lines) => lines.map((line) => line.replace(/;\r\n boundary=.*/, '')),
    'no end': (lines) => lines.filter((line) => !/^--.*--$/.test(line)),
    'spaces after delimiters': (lines) => lines.map((line) => (line.startsWith('--') ? `${line} ` : line)),
    'the type text': (lines) => lines.map((line) => line.replace('text/plain', 'text')),
    'no fields in parts': (lines) => lines.filter((line) => line !== PLAIN),
  };
  await fc.assert(
    fc.asyncProperty(
      message,
      fc.array(fc.constantFrom(...Object.keys(defects)), { minLength: 1, maxLength: 2 }),
      fc.nat(20),
      fc.integer({ min: 1, max: 300 }),
      async ({ lines, texts }, chosen, at, size) => {
        const broken = chosen.reduce((read, name) => defects[name]?.(read, at) ?? read, lines);
        const mail = await read(join(...HEADER, ...broken, ''), size);
        const isComplete = texts.every((text) => mail.text?.includes(text));
        expect(isComplete || mail.parseError !== null ? '' : mail.text).toBe('');
      },
    ),
    { numRuns: 200 },
  );
});
