import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { eventLine } from '../../clients/cli/src/commands/event-line.ts';
import { messageLines } from '../../clients/cli/src/commands/message-lines.ts';
import { safeName } from '../../clients/cli/src/commands/save-attachments.ts';
import type { Event } from '../../clients/cli/src/sdk.ts';
import { formatFields, formatTable } from '../../clients/cli/src/terminal/table.ts';
import { visible, visibleJson, visibleLines } from '../../clients/cli/src/terminal/visible.ts';
import { cutTo, widthOf } from '../../clients/cli/src/terminal/width.ts';

/** What strangers put into subjects, names and file names to act on a terminal or to deceive who reads it. */
const HOSTILE: [string, string][] = [
  ['a title of the window (OSC 0)', '\u001b]0;owned\u0007'],
  [
    'a link that shows another address (OSC 8)',
    '\u001b]8;;https://evil.example\u001b\\bank\u001b]8;;\u001b\\',
  ],
  ['a write to the clipboard (OSC 52)', '\u001b]52;c;cm0gLXJm\u0007'],
  ['colors and movement (CSI)', '\u001b[2J\u001b[1;1H\u001b[31mred'],
  ['the same in one character (C1)', '\u009b31m\u009d0;owned\u009c'],
  ['a device control string', '\u001bP$q"p\u001b\\'],
  ['a question to the terminal, whose answer is typed', '\u001b[c\u001b[6n\u0005'],
  ['a line that overwrites itself', 'pay 9\rpay 9000'],
  ['backspaces', 'evil\b\b\b\bgood'],
  ['further lines', 'Subject\nExit code: 0\u0085next\u2028next\u2029next\u000bnext\u000cnext'],
  ['reordered text', 'cod.\u202egnp.exe\u2066\u2069\u200f\u061c'],
  ['characters without width', 'pass\u200bword\u2060\ufeff\u00ad\u180e\u034f'],
  ['hidden text in Unicode tags', '\u{e0069}\u{e0067}\u{e006e}'],
  ['hidden bytes in variation selectors', 'a\ufe00\ufe01\u{e0100}\u{e01ef}'],
  ['letters that are blank', '\u3164\u115f\u1160\uffa0\u2800'],
  ['half of a character', 'a\ud800b\udc00'],
  ['private and unassigned characters', '\ue000\u{f0000}\u{10ffff}\uffff\u0378'],
  ['a joiner without pictures', 'a\u200db\u200c'],
];

/** Only what shows itself, spaces and line breaks. */
const HARMFUL =
  /[^\P{C}\n\t\u200d]|\u034f|(?!\ufe0f)\p{Variation_Selector}|[\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0\u2800]/u;

describe('strangers’ text', () => {
  test.each(HOSTILE)('%s: is shown, and does nothing', (_, text) => {
    for (const shown of [visible(text), visibleLines(text), visibleJson({ text })]) {
      expect(shown).not.toMatch(HARMFUL);
      expect(shown).not.toMatch(/\u200d|\r/);
    }
    expect(visible(text)).not.toContain('\n');
    expect(JSON.parse(visibleJson({ text }))).toEqual({ text });
  });

  test('any text at all is one line without controls, and its JSON means the same', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        expect(visible(text)).not.toMatch(HARMFUL);
        expect(visible(text)).not.toContain('\n');
        expect(visibleJson([text])).not.toMatch(HARMFUL);
        expect(JSON.parse(visibleJson([text]))).toEqual([text]);
      }),
    );
  });

  test.each(['Grüße', '你好', 'مرحبا', 'हिन्दी', '👩‍💻 ❤️ 👍🏽', 'naïve — “quoted”', 'e\u0301'])(
    'ordinary text stays: %s',
    (text) => expect(visible(text)).toBe(text),
  );

  test('an escape names the character', () => {
    expect(visible('a\u001b[31m\u202e')).toBe('a\\u{1b}[31m\\u{202e}');
    expect(visibleLines('a\r\nb\tc\u0007')).toBe('a\nb\tc\\u{7}');
    expect(visibleJson('\u009b\u202e\u{e0069}')).toBe('"\\u009b\\u202e\\udb40\\udc69"');
  });

  test('is escaped in tables, fields, whole messages and events', () => {
    for (const [, text] of HOSTILE) {
      const person = { email: `${text}@evil.example`, name: text };
      const shown = [
        ...formatTable([{ text }], [{ title: 'TEXT', value: (row) => row.text }], 80),
        ...formatFields([['Text', text]]),
        ...messageLines({
          id: 'msg_1',
          from: person,
          to: [person],
          cc: [person],
          subject: text,
          text,
          labels: [text],
          codes: [{ value: text, raw: text, confidence: 'high', context: text }],
          links: [{ url: text, text, kind: 'verify', host: text, matches_sender: false }],
          attachments: [{ id: 'att_1', filename: text, content_type: text, size_bytes: 1 }],
          bounce: { type: 'Permanent', reason: text, suppressed: false, next: text },
        }),
        eventLine({
          id: 'evt_1',
          type: 'message.received',
          timestamp: '2026-11-23T22:00:00Z',
          data: { message_id: 'msg_1', from_address: text, subject: text },
        } as unknown as Event),
      ];
      for (const line of shown) expect(line).not.toMatch(HARMFUL);
      // The body alone has lines of its own.
      for (const line of shown.filter((each) => each !== visibleLines(text)))
        expect(line).not.toContain('\n');
    }
  });
});

describe('the width of text', () => {
  test.each([
    ['abc', 3],
    ['e\u0301', 1],
    ['你好', 4],
    ['👩‍💻', 2],
    ['👍🏽', 2],
    ['❤️', 2],
    ['ｆｕｌｌ', 8],
    ['', 0],
  ])('%s is %i columns', (text, width) => expect(widthOf(text)).toBe(width));

  test('a cut never splits what is read as one character', () => {
    expect(cutTo('ab👩‍💻cd', 4)).toBe('ab…');
    expect(cutTo('ab👩‍💻cd', 5)).toBe('ab👩‍💻…');
    expect(cutTo('cafe\u0301s', 5)).toBe('cafe\u0301s');
    expect(cutTo('你好吗', 5)).toBe('你好…');
  });

  test('a table fits into the terminal, and its columns stand below each other', () => {
    const rows = [
      { id: 'msg_01', subject: '你好'.repeat(20) },
      { id: 'msg_02', subject: 'short' },
    ];
    const lines = formatTable(
      rows,
      [
        { title: 'ID', value: ({ id }) => id },
        { title: 'SUBJECT', value: ({ subject }) => subject, flexible: true },
        { title: 'STATUS', value: () => 'sent' },
      ],
      40,
    );
    expect(lines).toEqual([
      'ID      SUBJECT                   STATUS',
      'msg_01  你好你好你好你好你好你…   sent',
      'msg_02  short                     sent',
    ]);
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(40);
  });
});

describe('the name of a saved attachment', () => {
  test.each([
    ['invoice.pdf', 'invoice.pdf'],
    ['../../.ssh/authorized_keys', 'authorized_keys'],
    ['/etc/passwd', 'passwd'],
    ['..\\..\\windows\\win.ini', 'win.ini'],
    ['C:\\evil.exe', 'evil.exe'],
    ['.bashrc', 'bashrc'],
    ['..', ''],
    ['...', ''],
    ['', ''],
    ['a/', ''],
    ['nul', '_nul'],
    ['CON.txt', '_CON.txt'],
    ['name.txt. ', 'name.txt'],
    ['a\u0000b\nc', 'a_b_c'],
    ['cod\u202egnp.exe', 'cod_gnp.exe'],
    ['\u001b]0;x\u0007.txt', '_]0;x_.txt'],
    ['a:b|c?.txt', 'a_b_c_.txt'],
    ['Grüße 你好.txt', 'Grüße 你好.txt'],
  ])('%j becomes %j', (given, name) => expect(safeName(given)).toBe(name));

  test('fits into a file system, and keeps its extension', () => {
    expect(Buffer.byteLength(safeName(`${'你'.repeat(300)}.pdf`))).toBeLessThanOrEqual(200);
    expect(safeName(`${'a'.repeat(300)}.pdf`)).toMatch(/^a{196}\.pdf$/);
  });

  test('is never a path', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        const name = safeName(text);
        expect(name).not.toMatch(/[/\\]|^\.|\p{C}/u);
      }),
    );
  });
});
