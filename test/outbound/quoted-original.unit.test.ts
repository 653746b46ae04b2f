import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Parser } from 'htmlparser2';
import { htmlToText } from '../../domain/mime/html-to-text.ts';
import { extractReply } from '../../domain/mime/quotes/extract-reply.ts';
import {
  ALLOWED_TAGS,
  type SanitizeOptions,
  sanitizeHtml,
  TRUNCATION_MARK,
  textToHtml,
  truncateToBytes,
} from '../../domain/mime/sanitize-html.ts';
import { MAX_BODY_BYTES } from '../../domain/outbound/outbound-content.ts';
import {
  type Bodies,
  buildForwardBodies,
  buildReplyBodies,
  type Original,
  quoteLines,
} from '../../domain/outbound/quoted-original.ts';
import { cpuTimeMs } from '../support/cpu-time.ts';

const original = (changes: Partial<Original> = {}): Original => ({
  fromEmail: 'ada@people.example',
  fromName: 'Ada Müller',
  to: [{ email: 'agent@mail.test', name: 'Agent' }],
  cc: [],
  subject: 'Lunch',
  textBody: 'Are you there?\n\n> Earlier\n',
  htmlBody: null,
  createdAt: new Date('2026-11-21T09:05:06Z'),
  sentAt: null,
  receivedAt: null,
  headers: {},
  ...changes,
});
const converter = {
  sanitize: async (html: string, options: SanitizeOptions) => sanitizeHtml(html, options),
  toText: async (html: string) => htmlToText(html),
};
const reply = (bodies: Bodies, quoted: Original) => buildReplyBodies(bodies, quoted, converter);
const forward = (bodies: Bodies, quoted: Original, keepInlineImages: boolean) =>
  buildForwardBodies(bodies, quoted, { keepInlineImages, converter });
const WITH_INLINE_IMAGES = { maxBytes: 100_000, keepInlineImages: true };
const written = (textBody: string | null, htmlBody: string | null = null) => ({ textBody, htmlBody });

describe('the body of a reply', () => {
  test('in text quotes the original below', async () => {
    expect(await reply(written('I am.'), original())).toEqual({
      textBody:
        'I am.\n\nOn Sat, 21 Nov 2026 at 09:05 UTC, Ada Müller <ada@people.example> wrote:\n> Are you there?\n>\n>> Earlier\n',
      htmlBody: null,
    });
  });

  test('in HTML quotes inside the document with markup that mail clients recognize', async () => {
    const { textBody, htmlBody } = await reply(
      written(null, '<html><body><p>I am.</p></body></html>'),
      original({ htmlBody: '<p onclick="x()">Are <b>you</b> there?<script>x</script>' }),
    );
    expect(textBody).toBeNull();
    expect(htmlBody).toMatch(
      /^<html><body><p>I am\.<\/p><br><div class="gmail_quote">.*<\/div><\/body><\/html>$/s,
    );
    expect(htmlBody).toContain('Ada Müller &lt;ada@people.example&gt; wrote:');
    expect(htmlBody).toMatch(/<blockquote type="cite"[^>]*><p>Are <b>you<\/b> there\?<\/p><\/blockquote>/);
  });

  test('in both formats quotes in both, regardless of the original’s formats', async () => {
    const fromText = await reply(written('a', '<p>a</p>'), original({ textBody: '1 < 2' }));
    expect(fromText.textBody).toContain('\n> 1 < 2');
    expect(fromText.htmlBody).toContain('1 &lt; 2');
    const fromHtml = await reply(
      written('a', '<p>a</p>'),
      original({ textBody: null, htmlBody: '<p>1 &lt; 2</p>' }),
    );
    expect(fromHtml.textBody).toContain('\n> 1 < 2');
    expect(fromHtml.htmlBody).toContain('<p>1 &lt; 2</p>');
  });

  test('can be extracted again without its quote', async () => {
    const text = (await reply(written('I am.\nReally.'), original())).textBody;
    expect(extractReply({ text, html: null })).toBe('I am.\nReally.');
    const html = (await reply(written(null, '<p>I am.</p>'), original())).htmlBody;
    expect(extractReply({ text: null, html })).toBe('I am.');
  });

  test('to an empty message quotes nothing', async () => {
    expect(await reply(written('x', '<p>x</p>'), original({ textBody: ' \n' }))).toEqual({
      textBody: 'x',
      htmlBody: '<p>x</p>',
    });
  });

  test('never puts a sender’s name on its own line', async () => {
    const { textBody } = await reply(
      written('x'),
      original({ fromName: 'A\r\nB\u2028C <x@y> wrote:\n', fromEmail: 'a\n@b' }),
    );
    expect(textBody?.split('\n')[2]).toMatch(/^On .* UTC, A B C <x@y> wrote: <a @b> wrote:$/);
  });

  test('never exceeds the body limit', async () => {
    const long = original({
      textBody: 'é'.repeat(4_000_000),
      htmlBody: `<p>${'é<b>x</b>'.repeat(1_000_000)}`,
    });
    for (const own of ['x', 'x'.repeat(MAX_BODY_BYTES - 10), 'x\n'.repeat(2_300_000)]) {
      const { textBody, htmlBody } = await reply(written(own, own), long);
      expect(Buffer.byteLength(textBody ?? '')).toBeLessThanOrEqual(MAX_BODY_BYTES);
      expect(Buffer.byteLength(htmlBody ?? '')).toBeLessThanOrEqual(MAX_BODY_BYTES);
    }
    expect((await reply(written('x'), long)).textBody).toContain(TRUNCATION_MARK);
  });
});

describe('the body of a forward', () => {
  test('has a header block and the complete original', async () => {
    expect(await forward(written('See below.'), original({ cc: [{ email: 'c@x.test' }] }), true)).toEqual({
      textBody: [
        'See below.',
        '',
        '---------- Forwarded message ---------',
        'From: Ada Müller <ada@people.example>',
        'Date: Sat, 21 Nov 2026 09:05:06 +0000',
        'Subject: Lunch',
        'To: Agent <agent@mail.test>',
        'Cc: c@x.test',
        '',
        'Are you there?',
        '',
        '> Earlier',
        '',
      ].join('\n'),
      htmlBody: null,
    });
  });

  test('without a note starts with the original', async () => {
    expect((await forward(written(null), original(), true)).textBody).toMatch(/^-{10} Forwarded/);
  });

  test('keeps HTML and its images, even below a text note', async () => {
    const html = original({ htmlBody: '<p>Hi <img src="cid:logo@x" alt="Logo"></p>' });
    const forwarded = await forward(written('1 < 2'), html, true);
    expect(forwarded.htmlBody).toMatch(
      /^<div[^>]*>1 &lt; 2<\/div>.*<b>Subject:<\/b> Lunch<br>.*<img src="cid:logo@x" alt="Logo">/s,
    );
    expect(forwarded.textBody).toContain('1 < 2');
    expect((await forward(written('x'), html, false)).htmlBody).toContain('<p>Hi Logo</p>');
    expect(await forward(written(null, '<p>x</p>'), original(), true)).toMatchObject({ textBody: null });
  });

  test('escapes the header block', async () => {
    const { htmlBody } = await forward(
      written(null, '<p>x</p>'),
      original({ subject: '<script>"&', fromName: '<b>' }),
      true,
    );
    expect(htmlBody).toContain('<b>Subject:</b> &lt;script&gt;&quot;&amp;<br>');
    expect(htmlBody).not.toContain('<script');
  });

  test('lists at most 100 recipients', async () => {
    const to = Array.from({ length: 10_000 }, (_, index) => ({ email: `u${index}@x.test` }));
    const text = (await forward(written('x'), original({ to }), true)).textBody ?? '';
    expect(text).toContain('u99@x.test and 9900 more');
    expect(text).not.toContain('u100@x.test');
  });
});

describe('quoteLines', () => {
  test('adds one mark per line and is reversible', async () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom('a', '>', ' ', 'é', '\t') })), (lines) => {
        const text = [...lines, 'end'].join('\n');
        const quoted = quoteLines(text, 1_000_000).split('\n');
        expect(quoted.every((line) => line.startsWith('>'))).toBe(true);
        expect(quoted.map((line) => line.replace(/^>(?: (?!$))?/, ''))).toEqual(
          text
            .split('\n')
            .map((line) => (line.startsWith(' ') && line.trim() === '' ? expect.any(String) : line)),
        );
      }),
    );
  });

  test('stays within the byte limit', async () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 500 }),
        fc.integer({ min: 0, max: 600 }),
        (text, room) => {
          expect(Buffer.byteLength(quoteLines(text, room))).toBeLessThanOrEqual(room + 20);
          expect(truncateToBytes(text, room).isWellFormed()).toBe(text.isWellFormed());
        },
      ),
    );
  });
});

describe('a sanitized HTML fragment', () => {
  test.each([
    ['<p style="color:red;position:fixed">x', '<p style="color:red">x</p>'],
    ['<p style="background:url(https://x)">x</p>', '<p>x</p>'],
    ['<div style="margin:-99px;margin:1px">x</div>', '<div style="margin:1px">x</div>'],
    ['<a href="javascript:x()" onclick="x()">x</a>', '<a>x</a>'],
    ['<a href=" JaVaScRiPt:x">x</a>', '<a>x</a>'],
    ['<a href="java\nscript:x">x</a>', '<a>x</a>'],
    ['<a href="https://x.test/?a=1&b=%22">x</a>', '<a href="https://x.test/?a=1&amp;b=%22">x</a>'],
    [
      '<a href=\'https://x.test/"onmouseover="x\'>x</a>',
      '<a href="https://x.test/&quot;onmouseover=&quot;x">x</a>',
    ],
    ['<img src="https://x.test/a.png" onerror="x" width=1>', '<img src="https://x.test/a.png" width="1">'],
    ['<img src="data:image/png;base64,AAAA" alt="A<b">', 'A&lt;b'],
    ['<img src=x onerror=alert(1)>', ''],
    ['<script>x</script><style>p{}</style>y', 'y'],
    ['<svg><script>x</script><p>z</svg>y', 'y'],
    ['<math><mtext><style><img src=x onerror=x></style></math>y', 'y'],
    ['<iframe src="https://x"></iframe><object><p>x</object>y', 'y'],
    ['<form action="https://x"><input name=a><button>Go</button></form>', 'Go'],
    ['<meta http-equiv="refresh" content="0"><link rel="stylesheet" href="x"><base href="x">y', 'y'],
    ['<!--[if mso]><p>x</p><![endif]-->y<!-- -->', 'y'],
    ['<html><head><title>t</title></head><body bgcolor="red"><p>x</body></html>', '<p>x</p>'],
    ['</div></blockquote>x<b>y', 'x<b>y</b>'],
    ['&lt;script&gt;x&lt;/script&gt;', '&lt;script&gt;x&lt;/script&gt;'],
    ['<table><tr><td width="1">x', '<table><tr><td width="1">x</td></tr></table>'],
    ['<p id="a" class="b" contenteditable data-x="1">x</p>', '<p>x</p>'],
    ['<td>a<x-y>b<td>c', '<td>ab</td><td>c</td>'],
  ])('turns %j into %j', (html, expected) => {
    expect(sanitizeHtml(html, WITH_INLINE_IMAGES)).toBe(expected);
  });

  test('is well-formed, allowed and within the limit for any input', async () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '<div>',
        '</div>',
        '<p',
        '<b>',
        '<img src=cid:x>',
        '<svg>',
        '</svg>',
        '<script>',
        '<!--',
        '-->',
      ),
      fc.constantFrom(
        '<td>',
        '<a href="javascript:x">',
        '" onload="x',
        "'",
        '<style>',
        '</style>',
        '<br/>',
        '<![CDATA[',
      ),
      fc.string({ maxLength: 10 }),
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 40 }),
        fc.integer({ min: 0, max: 300 }),
        (pieces, maxBytes) => {
          const out = sanitizeHtml(pieces.join(''), { maxBytes, keepInlineImages: true });
          let depth = 0;
          const reader = new Parser({
            onopentag(name, attributes) {
              expect(ALLOWED_TAGS).toContain(name);
              for (const attribute of Object.keys(attributes)) expect(attribute).toMatch(/^(src|style)$/);
              depth += 1;
            },
            onclosetag(_name, implied) {
              depth -= 1;
              if (implied) expect(_name).toMatch(/^(img|br)$/);
            },
          });
          reader.end(out);
          expect(depth).toBe(0);
          expect(Buffer.byteLength(out)).toBeLessThanOrEqual(maxBytes + TRUNCATION_MARK.length + 2 + 40 * 6);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('takes bounded time for pathological input', async () => {
    for (const html of [
      '<div>'.repeat(100_000),
      '<b><p>'.repeat(80_000),
      '<'.repeat(500_000),
      '&'.repeat(500_000),
    ]) {
      const cost = cpuTimeMs(() => {
        sanitizeHtml(html, WITH_INLINE_IMAGES);
      });
      // Superlinear work would take minutes; garbage collection in a busy test process takes seconds.
      expect(cost).toBeLessThan(20_000);
    }
  });

  test('of plain text stays within the limit', async () => {
    expect(Buffer.byteLength(textToHtml('<'.repeat(10_000), { maxBytes: 1_000 }))).toBeLessThan(1_100);
  });
});

test.each([
  ['Fri, 02 Jan 2026 10:00:00 +0100', 'Fri, 02 Jan 2026 09:00:00 +0000'],
  ['Fri, 02 Jan 2099 10:00:00 +0100', 'Sat, 03 Jan 2026 00:00:00 +0000'],
  ['yesterday', 'Sat, 03 Jan 2026 00:00:00 +0000'],
])('a forward of a message dated %j shows %j', async (date, shown) => {
  const mail = original({ receivedAt: new Date('2026-01-03T00:00:00Z'), headers: { date } });
  expect((await forward(written('See below.'), mail, false)).textBody).toContain(`Date: ${shown}`);
});
