import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseMail } from '../../domain/mime/parse-mail.ts';

/** A character, and its octets in a charset. */
interface Character {
  text: string;
  octets: number[];
}

const SINGLE_BYTE = ['windows-1252', 'iso-8859-2', 'iso-8859-7', 'windows-1251', 'koi8-r', 'windows-1256'];
const MULTI_BYTE = ['big5', 'gbk', 'euc-kr', 'euc-jp', 'shift_jis'];
/** An octet that is not part of any character. */
const MEANINGLESS: Record<string, number> = { shift_jis: 0xfd, 'utf-8': 0x92 };

/** The characters of a charset with one or two octets, found with the decoder of the platform. */
function listCharacters(charset: string): Character[] {
  const decoder = new TextDecoder(charset, { fatal: true });
  const find = (octets: number[]): Character[] => {
    try {
      const text = decoder.decode(Uint8Array.from(octets));
      return [...text].length === 1 && /[\p{L}\p{N}\p{S}\p{P}]/u.test(text) ? [{ text, octets }] : [];
    } catch {
      return [];
    }
  };
  const range = (from: number) => Array.from({ length: 0x100 - from }, (_, n) => from + n);
  const singles = range(0x80).flatMap((octet) => find([octet]));
  if (SINGLE_BYTE.includes(charset)) return singles;
  return [...singles, ...range(0x81).flatMap((lead) => range(0x40).flatMap((trail) => find([lead, trail])))];
}

const CHARACTERS = Object.fromEntries(
  [...SINGLE_BYTE, ...MULTI_BYTE].map((charset) => [charset, listCharacters(charset)]),
);
const toUtf8 = (text: string): Character => ({ text, octets: [...Buffer.from(text)] });
const ascii = fc.constantFrom(...'abz AZ019.,=-_+/~\\"<>').map(toUtf8);

function charactersOf(charset: string): fc.Arbitrary<Character> {
  const known = CHARACTERS[charset];
  return known ? fc.constantFrom(...known) : fc.constantFrom(...'äßéñœ€’“–…Жщλ你好日本語한국😀').map(toUtf8);
}

/** Lines of text, whose ends are visible characters. */
const linesOf = (character: fc.Arbitrary<Character>) =>
  fc
    .array(fc.array(fc.oneof(character, ascii), { maxLength: 30 }), { minLength: 1, maxLength: 4 })
    .map((lines) => lines.flatMap((line) => [...toMark('x'), ...line, ...toMark('x\r\n')]));
const toMark = (text: string) => [...text].map(toUtf8);
const textOf = (characters: Character[]) => characters.map(({ text }) => text).join('');
const octetsOf = (characters: Character[]) => Buffer.from(characters.flatMap(({ octets }) => octets));

const escapeOctet = (octet: number) => `=${octet.toString(16).toUpperCase().padStart(2, '0')}`;

/** Quoted-printable as programs write it: each 8-bit octet encoded or not, lines broken anywhere. */
function toQuotedPrintable(octets: Buffer, choices: number[]): string {
  return [...octets]
    .map((octet, at) => {
      const choice = choices[at % choices.length] ?? 0;
      if (octet === 0x0d || octet === 0x0a) return octet === 0x0a ? `${' \t'.slice(0, choice % 3)}\r\n` : '';
      const isEncoded = octet === 0x3d || (octet > 0x7e && choice % 2 === 0);
      const written = isEncoded ? escapeOctet(octet) : String.fromCharCode(octet);
      return choice % 7 === 0 ? `${written}=\r\n` : choice % 11 === 0 ? `${written}= \n` : written;
    })
    .join('');
}

const ENCODERS: Record<string, (octets: Buffer, choices: number[]) => string> = {
  '8bit': (octets) => octets.toString('latin1'),
  'quoted-printable': toQuotedPrintable,
  base64: (octets) => (octets.toString('base64').match(/.{1,60}/g) ?? []).join('\r\n'),
};

interface Place {
  name: string;
  build(type: string, encoding: string, content: string): string;
}
const fieldsOf = (type: string, encoding: string) =>
  `Content-Type: ${type}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n`;
const PLACES: Place[] = [
  {
    name: 'the text',
    build: (type, encoding, content) => `${fieldsOf(`text/plain${type}`, encoding)}${content}`,
  },
  {
    name: 'the HTML',
    build: (type, encoding, content) => `${fieldsOf(`text/html${type}`, encoding)}${content}`,
  },
  {
    name: 'a part',
    build: (type, encoding, content) =>
      `Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n${fieldsOf(`text/plain${type}`, encoding)}${content}\r\n--b--\r\n`,
  },
];

async function read(message: string, chunkBytes: number) {
  const bytes = Buffer.from(message, 'latin1');
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, n) =>
    bytes.subarray(n * chunkBytes, (n + 1) * chunkBytes),
  );
  const { text, html, subject } = await parseMail(Readable.from(chunks), { consumeFile: async () => {} });
  return { body: (text || html || '').trimEnd(), subject };
}

const normalize = (text: string) => text.replaceAll('\r\n', '\n').trimEnd();
const choices = fc.array(fc.nat(100), { minLength: 1, maxLength: 50 });
const chunkSize = fc.integer({ min: 1, max: 200 });
const place = fc.constantFrom(...PLACES);
const encoding = fc.constantFrom(...Object.keys(ENCODERS));

const CHARSETS = ['utf-8', ...SINGLE_BYTE, ...MULTI_BYTE];

describe('a body in a charset', () => {
  test.each(CHARSETS)('comes back whole: %s', async (charset) => {
    await fc.assert(
      fc.asyncProperty(
        linesOf(charactersOf(charset)),
        encoding,
        place,
        choices,
        chunkSize,
        async (lines, encoded, { build }, given, size) => {
          const content = ENCODERS[encoded]?.(octetsOf(lines), given) ?? '';
          const { body } = await read(build(`; charset=${charset}`, encoded, content), size);
          expect(body).toBe(normalize(textOf(lines)));
        },
      ),
      { numRuns: 60 },
    );
  });

  test('comes back whole without a charset, if it is UTF-8', async () => {
    await fc.assert(
      fc.asyncProperty(
        linesOf(charactersOf('utf-8')),
        encoding,
        place,
        choices,
        async (lines, encoded, { build }, given) => {
          const content = ENCODERS[encoded]?.(octetsOf(lines), given) ?? '';
          const { body } = await read(build('', encoded, content), 1_000);
          expect(body).toBe(normalize(textOf(lines)));
        },
      ),
    );
  });

  test.each(['utf-8', ...MULTI_BYTE])('loses only octets without meaning: %s', async (charset) => {
    const stray = fc.constant<Character>({ text: '\ufffd', octets: [MEANINGLESS[charset] ?? 0xff] });
    await fc.assert(
      fc.asyncProperty(
        linesOf(fc.oneof({ arbitrary: charactersOf(charset), weight: 4 }, stray)),
        encoding,
        place,
        choices,
        chunkSize,
        async (given, encoded, { build }, chosen, size) => {
          const lines = [...given, toUtf8('x'), ...(charset === 'utf-8' ? ['€', '€'].map(toUtf8) : [])];
          const content = ENCODERS[encoded]?.(octetsOf(lines), chosen) ?? '';
          const { body } = await read(build(`; charset=${charset}`, encoded, content), size);
          expect(body).toBe(normalize(textOf(lines)));
        },
      ),
      { numRuns: 60 },
    );
  });

  test('never loses ASCII, whatever the octets and the charset', async () => {
    const word = fc.tuple(
      fc.uint8Array({ max: 255, maxLength: 6 }).map((octets) => [...octets].map((octet) => octet | 0x80)),
      fc.constantFrom(' It', ' = ', ' <b>', ' \\~', ' 100 '),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(word, { maxLength: 20 }),
        fc.constantFrom(
          '',
          ...[...CHARSETS, 'us-ascii', 'utf-16', 'x-unknown', 'nonsense'].map((name) => `; charset=${name}`),
        ),
        encoding,
        place,
        choices,
        async (words, type, encoded, { build }, given) => {
          // Pure ASCII may be UTF-16 by mistake; with other octets it is UTF-16.
          const octets = Buffer.from(
            words.flatMap(([eightBit, text]) => [
              ...(type.includes('16') ? [] : eightBit),
              ...Buffer.from(text),
            ]),
          );
          const content =
            ENCODERS[encoded]?.(Buffer.concat([Buffer.from('x'), octets, Buffer.from('x')]), given) ?? '';
          const { body } = await read(build(type, encoded, content), 1_000);
          const expected = `x${words.map(([, text]) => text).join('')}x`;
          expect(body.replace(/[^\p{ASCII}]/gu, '')).toBe(expected);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('a header field', () => {
  test.each(CHARSETS)('comes back whole from an encoded word: %s', async (charset) => {
    const words = fc.array(charactersOf(charset), { minLength: 1, maxLength: 15 });
    await fc.assert(
      fc.asyncProperty(words, fc.boolean(), async (characters, isBase64) => {
        const octets = octetsOf(characters);
        const word = isBase64
          ? `=?${charset}?B?${octets.toString('base64')}?=`
          : `=?${charset}?Q?${[...octets].map(escapeOctet).join('')}?=`;
        const { subject } = await read(`Subject: ${word}\r\n\r\nx`, 1_000);
        expect(subject).toBe(textOf(characters));
      }),
      { numRuns: 60 },
    );
  });

  test('comes back whole from raw UTF-8, with an octet without meaning as U+FFFD', async () => {
    const stray = fc.constant<Character>({ text: '\ufffd', octets: [0x92] });
    const character = fc.oneof({ arbitrary: charactersOf('utf-8'), weight: 4 }, stray);
    await fc.assert(
      fc.asyncProperty(fc.array(character, { maxLength: 20 }), async (characters) => {
        const all = [toUtf8('€'), ...characters, toUtf8('€')];
        const { subject } = await read(`Subject: ${octetsOf(all).toString('latin1')}\r\n\r\nx`, 1_000);
        expect(subject).toBe(textOf(all));
      }),
    );
  });
});

/** Real sentences: what distinguishes the charsets is the frequency of their characters. */
const SENTENCES: [string, string, string][] = [
  [
    'big5',
    '您好，附件是本月的帳單，請於十五日前繳納。謝謝您的配合！',
    'sXqmbqFBqv6l86xPpbuk66q6sWKz5qFBvdCp86RRpK2k6atlw7qvx6FDwcLBwrF6qrqwdKZYoUk=',
  ],
  ['big5', '你好', 'p0Gmbg=='],
  [
    'big5',
    'Hi 王先生, 會議改到星期三 3:00 pm.\nThanks',
    'SGkgpP2l/aXNLCC3fMSzp++o7KxQtMGkVCAzOjAwIHBtLgpUaGFua3M=',
  ],
  [
    'gb18030',
    '您好，附件是本月的账单，请于十五日前缴纳。谢谢您的配合！',
    'xPq6w6OsuL28/srHsb7UwrXE1cu1paOsx+vT2squzuXI1cewvcnEyaGj0LvQu8T6tcTF5LrPo6E=',
  ],
  [
    'euc-kr',
    '안녕하세요. 이번 달 청구서를 첨부합니다. 감사합니다.',
    'vsiz58fPvLy/5C4gwMy5+CC03iDDu7G4vK24piDDt7rOx9W0z7TZLiCwqLvnx9W0z7TZLg==',
  ],
  [
    'euc-jp',
    'お世話になっております。請求書を添付いたします。',
    'pKrApM/DpMukyqTDpMakqqTqpN6kuaGjwMG14b3xpPLFusnVpKSkv6S3pN6kuaGj',
  ],
  [
    'shift_jis',
    'お世話になっております。請求書を添付いたします。',
    'gqiQophigsmCyILBgsSCqILogtyCt4FCkL+LgY+RgvCTWZV0gqKCvYK1gtyCt4FC',
  ],
  [
    'windows-1252',
    'Größe: 5 °C – “naïve” café, ÄÖÜ, ¡¡Hola!!',
    'R3L232U6IDUgsEMgliCTbmHvdmWUIGNhZuksIMTW3CwgoaFIb2xhISE=',
  ],
  ['windows-1252', '····· «Ça va» …… §§ 1–3', 't7e3t7cgq8dhIHZhuyCFhSCnpyAxljM='],
];

describe('a body without a charset', () => {
  test.each(SENTENCES)('is recognized as %s: %s', async (_charset, text, base64) => {
    const { body } = await read(`Content-Transfer-Encoding: base64\r\n\r\n${base64}`, 1_000);
    expect(body).toBe(text);
  });
});
