import { describe, expect, test } from '@jest/globals';
import EmailReplyParser from 'email-reply-parser';
import fc from 'fast-check';
import { htmlToText } from '../../domain/mime/html-to-text.ts';
import { extractReply } from '../../domain/mime/quotes/extract-reply.ts';
import { markHtmlQuotes, toMarkedLines } from '../../domain/mime/quotes/html-quotes.ts';
import { toLines } from '../../domain/mime/quotes/lines.ts';
import { extractReplyLines } from '../../domain/mime/quotes/reply-text.ts';
import { runWithTimeout } from '../../platform/run-with-timeout.ts';
import { cpuTimeMs } from '../support/cpu-time.ts';
import { announcedReplies, endedReplies, type ReplyFixture, wholeMails } from './reply-fixtures.ts';

type Bodies = Parameters<typeof extractReply>[0];

const fromText = (text: string) => extractReply({ text, html: null });
const fromHtml = (html: string) => extractReply({ text: null, html });

describe('extracts the reply from text', () => {
  test.each([
    ['alone', 'Yes, Friday works.\r\nSee you!\r\n', 'Yes, Friday works.\nSee you!'],
    [
      'above a quote',
      'Yes.\n\nOn Mon, 2 Mar 2026 at 10:11, An Agent <agent@agents.test> wrote:\n> Friday?\n>\n> A\n',
      'Yes.',
    ],
    [
      'above a wrapped attribution',
      'Yes.\n\nOn Mon, 2 Mar 2026 at 10:11, An Agent\n<agent@agents.test> wrote:\n\n> Friday?\n',
      'Yes.',
    ],
    ['in German', 'Ja.\n\nAm 02.03.2026 um 10:11 schrieb An Agent <agent@agents.test>:\n> Freitag?\n', 'Ja.'],
    [
      'in French',
      'Oui.\n\nLe lun. 2 mars 2026 à 10:11, An Agent <agent@agents.test> a écrit :\n> Vendredi ?\n',
      'Oui.',
    ],
    [
      'above Outlook’s block',
      'Yes.\n\n-----Original Message-----\nFrom: An Agent\nSent: Monday\n\nFriday?\n',
      'Yes.',
    ],
    ['above a signature', 'Yes.\n\n-- \nBob\nExample Ltd\n', 'Yes.'],
    [
      'from a telephone',
      'Yes.\n\nSent from my iPhone\n\nOn 2 Mar 2026, at 10:11, A <a@b.test> wrote:\n\n> Friday?',
      'Yes.',
    ],
    ['below the quote', '> Friday?\n\nYes.\n', 'Yes.'],
    [
      'between quotes',
      '> Friday?\n\nYes.\n\n> Noon?\n\nNo, one.\n',
      '> Friday?\n\nYes.\n\n> Noon?\n\nNo, one.',
    ],
    ['that is fully quoted', '> Friday?\n> Noon?\n', ''],
    ['that is empty', ' \n\n', ''],
  ])('%s', (_what, text, expected) => {
    expect(fromText(text).replaceAll('\r\n', '\n')).toBe(expected);
  });

  test('prefers text, unless only the HTML marks the quote', () => {
    expect(extractReply({ text: 'text', html: '<p>html</p>' })).toBe('text');
    const html = '<p>Oo.</p><div class="gmail_quote">Noong Lun<blockquote>Biyernes?</blockquote></div>';
    expect(extractReply({ text: 'Oo.\n\nNoong Lun\n\nBiyernes?', html })).toBe('Oo.');
    expect(extractReply({ text: 'Oo.\n\n> Biyernes?', html: '<p>Yes.</p>' })).toBe('Oo.');
    expect(extractReply({ text: ' ', html: '<p>html</p>' })).toBe('html');
    expect(extractReply({ text: null, html: null })).toBe('');
  });
});

const parser = new EmailReplyParser();

/** The library alone, applied to the text of the HTML. */
function libraryReply({ text, html }: ReplyFixture): string {
  return parser.parseReply((text ?? htmlToText(html ?? '')).replaceAll('\r\n', '\n')).trim();
}

describe('extracts the replies of many clients in many languages:', () => {
  test.each([
    ['client-specific attributions', announcedReplies(), 148],
    ['complete text messages', wholeMails('text.txt', 'text'), 53],
    ['complete HTML messages', wholeMails('html.txt', 'html'), 37],
    ['text messages written after the code', wholeMails('fresh-text.txt', 'text'), 30],
    ['more text messages written after the code', wholeMails('second-look.txt', 'text'), 40],
    ['HTML messages written after the code', wholeMails('fresh-html.txt', 'html'), 10],
    ['attributions that are only a date and a name', announcedReplies('attributions-date-and-name.txt'), 28],
    ['attributions over several lines', announcedReplies('attributions-wrapped.txt'), 27],
    ['attributions of trackers and forums', announcedReplies('attributions-forum.txt'), 34],
    ['quote marks after initials', wholeMails('initials.txt', 'text'), 24],
    ['several device signatures', endedReplies('device-signatures.txt'), 82],
    ['zero-width marks at the end', endedReplies('zero-width-ends.txt'), 54],
    ['attributions that share a line with the reply', wholeMails('shared-lines.txt', 'text'), 10],
    ['header blocks without a sender', wholeMails('headers-without-sender.txt', 'text'), 14],
    ['plain blockquotes', wholeMails('blockquotes.txt', 'html'), 5],
    ['text that only resembles a quote', wholeMails('kept-text.txt', 'text'), 19],
  ])('%s', (_what, fixtures, atLeast) => {
    const wrong = fixtures.filter((mail) => extractReply(mail).replaceAll('\r\n', '\n') !== mail.reply);
    const ofLibrary = fixtures.filter((mail) => libraryReply(mail) === mail.reply).length;
    const counts = `exact: ours ${fixtures.length - wrong.length}, email-reply-parser alone ${ofLibrary}, of ${fixtures.length}`;
    expect({ counts, wrong: wrong.map(({ name }) => name) }).toEqual({ counts, wrong: [] });
    expect(fixtures.length).toBeGreaterThanOrEqual(atLeast);
  });
});

describe('for any message', () => {
  const line = fc.constantFrom(
    ...[
      'Yes.',
      'On second thought, no.',
      '',
      '',
      '> Friday?',
      '>> Noon?',
      '> ',
      '-- ',
      '--',
      '---',
      'Bob',
      '```',
    ],
    ...[
      'On Mon, 2 Mar 2026 at 10:11, Bob <bob@example.com> wrote:',
      'On Mon, 2 Mar 2026 at 10:11, Bob',
      'wrote:',
    ],
    ...['<bob@example.com> wrote:', 'Bob wrote:', '-----Original Message-----', 'Begin forwarded message:'],
    ...[
      'From: Bob <bob@example.com>',
      'Sent: Monday 10:11',
      'To: Alice',
      'Subject: Friday',
      'Sent from my iPhone',
    ],
    ...[
      '________________________________',
      '##- Please type your reply above this line -##',
      '>From here',
      '\u200b',
    ],
    ...[
      '2026年3月2日(月) 10:11 Bob <bob@example.com>:',
      'Am 02.03.26 um 10:11 schrieb Bob:',
      '\t \u00a0',
      '👍',
    ],
  );
  const mail = fc.array(line, { maxLength: 25 }).map((lines) => lines.join('\n'));

  test('the reply consists of its lines in order', () => {
    fc.assert(
      fc.property(fc.oneof(mail, fc.string()), (text) => {
        const lines = text.split(/\r\n|\n|\r/).map((word) => word.trim());
        let at = -1;
        for (const word of fromText(text)
          .split('\n')
          .map((part) => part.trim())) {
          if (word === '') continue;
          at = lines.indexOf(word, at + 1);
          expect(at).not.toBe(-1);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('extraction is idempotent', () => {
    fc.assert(
      fc.property(fc.oneof(mail, fc.string()), (text) => {
        const reply = fromText(text);
        expect(fromText(reply)).toBe(reply);
      }),
      { numRuns: 2_000 },
    );
  });

  test('text without a quote is unchanged', () => {
    const words = fc.array(
      fc.constantFrom('Yes,', 'noon', 'is fine', 'ünï', '3 pm', '', 'to him: no', 'from me'),
    );
    fc.assert(
      fc.property(fc.array(words, { maxLength: 12 }), (lines) => {
        const text = lines.map((parts) => parts.join(' ')).join('\n');
        expect(fromText(text)).toBe(text.trim());
      }),
    );
  });
});

const QUOTED = '<div>Friday?</div>';

describe('extracts the reply from HTML', () => {
  test.each([
    [
      'of Gmail',
      `<div dir="ltr">Yes.</div><br><div class="gmail_quote gmail_quote_container"><div dir="ltr" class="gmail_attr">On Mon, A wrote:<br></div><blockquote class="gmail_quote">${QUOTED}</blockquote></div>`,
    ],
    [
      'of Apple Mail',
      `<html><body>Yes.<br><blockquote type="cite"><div>On Mon, A wrote:</div>${QUOTED}</blockquote></body></html>`,
    ],
    [
      'of Thunderbird',
      `<body><div class="moz-cite-prefix">On 02.03.26, A wrote:<br></div><blockquote type="CITE" cite="mid:x">${QUOTED}</blockquote><p>Yes.</p></body>`,
    ],
    [
      'of Outlook on the web',
      `<div>Yes.</div><div id="appendonsend"></div><hr><div id="divRplyFwdMsg"><b>From:</b> A<br><b>Sent:</b> Monday</div>${QUOTED}`,
    ],
    [
      'of Outlook on the web, forwarded through another',
      `<div>Yes.</div><hr><div id="x_divRplyFwdMsg"><b>From:</b> A</div>${QUOTED}`,
    ],
    [
      'of Outlook for Windows',
      `<div class="WordSection1"><p>Yes.</p><div><div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm'><p><b>From:</b> A</p></div></div>${QUOTED}</div>`,
    ],
    [
      'of Yahoo',
      `<div>Yes.</div><div id="ydp1" class="ydp2 yahoo_quoted"><div>On Monday, A wrote:</div>${QUOTED}</div>`,
    ],
    [
      'of Proton',
      `<div>Yes.</div><div class="protonmail_quote">On Monday, A wrote:<blockquote>${QUOTED}</blockquote></div>`,
    ],
    [
      'with quotes in quotes',
      `Yes.<blockquote type=cite>a<blockquote type=cite>b</blockquote>${QUOTED}</blockquote>`,
    ],
    ['with an unclosed quote', `<p>Yes.</p><blockquote type="cite">${QUOTED}<p>more`],
    ['with a signature below', 'Yes.<br><br>-- <br>Bob'],
  ])('%s', (_what, html) => {
    expect(fromHtml(html)).toBe('Yes.');
  });

  test('continues after a closed quote', () => {
    expect(
      fromHtml(`<p>Above.</p><blockquote type="cite">${QUOTED}<img><br></blockquote><p>Below.</p>`),
    ).toBe('Above.\n\nBelow.');
  });

  test('returns the forwarded message of a bare forward', () => {
    const html = `<div class="gmail_quote">---------- Forwarded message ---------<br>${QUOTED}</div>`;
    expect(fromHtml(html)).toContain('Friday?');
  });

  test('leaves HTML without quotes unchanged', () => {
    fc.assert(
      fc.property(fc.string(), (html) => {
        fc.pre(!/<|[\ue001-\ue006]/.test(html));
        expect(markHtmlQuotes(html)).toBe(html);
      }),
    );
  });
});

describe('time and size', () => {
  test('the reply is never longer than the message', () => {
    const pieces = fc.constantFrom(
      ...[
        '<blockquote type=cite>',
        '</blockquote>',
        '<div class=gmail_quote>',
        '</div>',
        '<p>',
        '</p>',
        'text ',
        '<br>',
      ],
      ...['<!--', '-->', '<div id=divRplyFwdMsg>', '> quoted\n', 'On Mon, A <a@b> wrote:\n', '\n', '-- \n'],
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 60 }), (parts) => {
        const source = parts.join('');
        expect(fromText(source).length).toBeLessThanOrEqual(source.length);
        fromHtml(source);
      }),
      {
        examples: [
          [['On Mon, A <a@b> wrote:\n', 'text ', 'On Mon, A <a@b> wrote:\n', '<blockquote type=cite>']],
          [['> quoted\n', 'text ', 'On Mon, A <a@b> wrote:\n', '> quoted\n', '<blockquote type=cite>']],
        ],
      },
    );
  });

  const HOSTILE: [string, Bodies][] = [
    ['catastrophic backtracking', { text: 'Op schreef\n'.repeat(5_000), html: null }],
    ['one very long line', { text: `On ${'a '.repeat(400_000)}`, html: null }],
    ['empty lines', { text: `x${'\n'.repeat(2_000_000)}x`, html: null }],
    ['deep HTML', { text: null, html: '<div>'.repeat(200_000) }],
    ['deep HTML that ends with text', { text: null, html: `${'<b><p>'.repeat(80_000)}words` }],
    ['deep quotes', { text: null, html: `Yes.${'<blockquote type=cite>'.repeat(30_000)}` }],
    ['broad HTML', { text: null, html: `<p>${'x<br>'.repeat(200_000)}` }],
    ['many attributes', { text: null, html: `<div ${'a=b '.repeat(200_000)}>` }],
    ['many classes', { text: null, html: `<div class="${'a '.repeat(200_000)}">` }],
  ];

  test.each(HOSTILE)('returns bounded text for %s', (_what, bodies) => {
    expect(extractReply(bodies).length).toBeLessThanOrEqual(524_288);
  });

  /** The rules of `extractReply` without its time limits, which would hide a rule that never terminates. */
  const applyRules = ({ text, html }: Bodies) =>
    extractReplyLines(
      html === null
        ? toLines(text?.slice(0, 524_288) ?? '')
        : toMarkedLines(htmlToText(markHtmlQuotes(html))),
    );

  test.each(HOSTILE)(
    'applies its rules in proportionate time to %s',
    (_what, bodies) => {
      let reply: object | null = null;
      const costMs = cpuTimeMs(() => {
        reply = runWithTimeout(60_000, () => applyRules(bodies));
      });
      expect(reply).not.toBeNull();
      // A superlinear rule would take minutes; garbage collection in a busy process may take seconds.
      expect(costMs).toBeLessThan(20_000);
    },
    70_000,
  );
});
